// Command gpushare-scheduler is kube-scheduler with the plugin GPUShare: it knows what is free on each card.
//
// Its flags and its configuration are kube-scheduler's.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // counts client requests in /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // build information in /metrics
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	"gpushare.io/scheduler/internal/plugin"
	"gpushare.io/scheduler/internal/program"
)

func main() {
	factory := &plugin.Factory{}
	command := program.Program{Option: app.WithPlugin(plugin.Name, factory.New), Stop: factory.Stop}.Command()
	os.Exit(cli.Run(command))
}
