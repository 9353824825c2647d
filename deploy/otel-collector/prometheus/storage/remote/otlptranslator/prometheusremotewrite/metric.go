// Package prometheusremotewrite has the one function that the Collector's Prometheus
// exporter calls.  Prometheus's own package of this name needs the SDKs of three clouds,
// which would be a third of what is compiled.
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

// TranslatorMetricFromOtelMetric returns what Prometheus's name of a metric is made of.
func TranslatorMetricFromOtelMetric(metric pmetric.Metric) otlptranslator.Metric {
	kind := types[metric.Type()]
	if metric.Type() == pmetric.MetricTypeSum && metric.Sum().IsMonotonic() {
		kind = otlptranslator.MetricTypeMonotonicCounter
	}
	return otlptranslator.Metric{Name: metric.Name(), Unit: metric.Unit(), Type: kind}
}
