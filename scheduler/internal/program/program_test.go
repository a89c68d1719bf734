package program

import (
	"context"
	"maps"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func TestTheFlagsAreThoseOfKubeScheduler(t *testing.T) {
	ours, theirs := defaults(Program{}.Command().Flags()), defaults(app.NewSchedulerCommand().Flags())
	if !maps.Equal(ours, theirs) {
		t.Errorf("flags %v, want %v", ours, theirs)
	}
	if len(ours) < 50 {
		t.Errorf("only %d flags", len(ours))
	}
}

func defaults(flags *pflag.FlagSet) map[string]string {
	found := map[string]string{}
	flags.VisitAll(func(flag *pflag.Flag) { found[flag.Name] = flag.DefValue + " " + flag.Usage })
	return found
}

func TestArgumentsAreRefused(t *testing.T) {
	command := Program{Stop: func(context.Context) error { return nil }}.Command()
	if err := command.Args(command, []string{"x"}); err == nil {
		t.Error("no error")
	}
}
