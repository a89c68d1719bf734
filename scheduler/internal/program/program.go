// Package program is kube-scheduler's own command, but for how it ends.
//
// kube-scheduler gives its leadership up and exits as soon as it is told to stop, whatever is under way. This program
// stops what binds pods first, which takes as long as the Bindings that are under way, and only then the rest: so the
// next leader may bind at once. kube-scheduler offers no place for that, so its command is written anew here, from
// NewSchedulerCommand and runCommand of k8s.io/kubernetes/cmd/kube-scheduler/app; a test compares the flags.
package program

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/server"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// stopTime is for the Bindings that are under way; half of the kubelet's default grace period.
const stopTime = 15 * time.Second

// Program is what is run.
type Program struct {
	// Option is kube-scheduler's, with the plugin.
	Option app.Option
	// Stop is called before all else is stopped. It may take until ctx ends.
	Stop func(ctx context.Context) error
}

// Command returns the command line.
func (p Program) Command() *cobra.Command {
	own := options.NewOptions()
	command := &cobra.Command{
		Use:               "kube-scheduler",
		Long:              "kube-scheduler with a plugin that knows what is free on each GPU card.",
		Args:              cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error { return own.ComponentGlobalsRegistry.Set() },
		RunE:              func(command *cobra.Command, _ []string) error { return p.run(command, own) },
	}
	verflag.AddFlags(own.Flags.FlagSet("global"))
	globalflag.AddGlobalFlags(own.Flags.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range own.Flags.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	return command
}

func (p Program) run(command *cobra.Command, own *options.Options) error {
	verflag.PrintAndExitIfRequested()
	gates := own.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(own.Logs, gates); err != nil {
		return fmt.Errorf("flags for logs: %w", err)
	}
	cliflag.PrintFlags(command.Flags())
	if err := nameInformers(own); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-server.SetupSignalHandler()
		p.stop()
		cancel()
	}()
	config, scheduler, err := app.Setup(ctx, own, p.Option)
	if err != nil {
		return err
	}
	gates.(featuregate.MutableFeatureGate).AddMetrics()
	own.ComponentGlobalsRegistry.AddMetrics()
	return app.Run(ctx, config, scheduler)
}

func (p Program) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		klog.ErrorS(err, "The next scheduler cannot bind pods at once")
	}
}
