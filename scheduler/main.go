// Command gpushare-scheduler is kube-scheduler with the plugin GPUShare: it knows what is free on each card.
//
// Its flags and its configuration are kube-scheduler's.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // counts client requests in /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // build information in /metrics

	"gpushare.io/scheduler/internal/inspection"
	"gpushare.io/scheduler/internal/plugin"
	"gpushare.io/scheduler/internal/program"
)

func main() {
	factory := &plugin.Factory{Show: show}
	command := program.Program{Option: factory.Register, Stop: factory.Stop}.Command()
	os.Exit(cli.Run(command))
}

// show adds to kube-scheduler's own /metrics and /configz.
func show(collector metrics.StableCollector, counted *inspection.Inspection) {
	legacyregistry.CustomMustRegister(collector)
	if shown, err := configz.New(inspection.Name); err == nil { // nobody else has the name
		shown.Set(counted)
	}
}
