// Replaces Prometheus' module, of which the Collector's exporter calls one function.
module github.com/prometheus/prometheus

go 1.25

require (
	github.com/prometheus/otlptranslator v1.0.0
	go.opentelemetry.io/collector/pdata v1.61.0
)
