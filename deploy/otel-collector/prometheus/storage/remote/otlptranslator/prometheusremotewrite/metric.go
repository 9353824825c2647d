// Package prometheusremotewrite has the function that the Collector's Prometheus exporter
// calls. Prometheus' package of this name depends on the SDKs of three clouds, which would
// be a third of the compiled code.
package prometheusremotewrite

import (
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var types = map[pmetric.MetricType]otlptranslator.MetricType{
	pmetric.MetricTypeGauge:                otlptranslator.MetricTypeGauge,
	pmetric.MetricTypeSum:                  otlptranslator.MetricTypeNonMonotonicCounter,
	pmetric.MetricTypeHistogram:            otlptranslator.MetricTypeHistogram,
	pmetric.MetricTypeExponentialHistogram: otlptranslator.MetricTypeExponentialHistogram,
	pmetric.MetricTypeSummary:              otlptranslator.MetricTypeSummary,
}

// TranslatorMetricFromOtelMetric returns the parts of a metric's name in Prometheus.
func TranslatorMetricFromOtelMetric(metric pmetric.Metric) otlptranslator.Metric {
	kind := types[metric.Type()]
	if metric.Type() == pmetric.MetricTypeSum && metric.Sum().IsMonotonic() {
		kind = otlptranslator.MetricTypeMonotonicCounter
	}
	return otlptranslator.Metric{Name: metric.Name(), Unit: metric.Unit(), Type: kind}
}
