package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/network"
)

func TestExtraFlagsGoToTheirComponentAlone(t *testing.T) {
	c := newComponents(config.Cluster{
		Directory: "/d", ComponentFlags: map[string][]string{controllerManager: {"--controllers=*,-node-lifecycle-controller"}},
	})
	for _, name := range []string{etcd, apiserver, controllerManager} {
		arguments := c.arguments(name)
		extra := arguments[len(arguments)-1] == "--controllers=*,-node-lifecycle-controller"
		if extra != (name == controllerManager) {
			t.Errorf("%s gets %q", name, arguments)
		}
	}
}

func TestTheServiceAddressIsLeftToAProxyOnRequest(t *testing.T) {
	for wanted, cluster := range map[string]config.Cluster{
		"--bind-address=0.0.0.0": {}, "--bind-address=" + network.Gateway: {FreeServiceAddress: true},
	} {
		if arguments := newComponents(cluster).arguments(apiserver); !slices.Contains(arguments, wanted) {
			t.Errorf("%q lacks %s", arguments, wanted)
		}
	}
}

func TestOnlyARunningComponentCanBeKilled(t *testing.T) {
	if err := newComponents(config.Cluster{}).kill("kube-proxy"); err == nil || !strings.Contains(err.Error(), apiserver) {
		t.Errorf("error %v does not say which there are", err)
	}
}

func TestOnlyTheEndOfALogIsShown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	lines := strings.Repeat("early\n", 2*logTail) + strings.Repeat("late\n", logTail)
	if err := os.WriteFile(path, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := endOfLog(path); strings.Count(got, "late") != logTail || strings.Contains(got, "early") {
		t.Errorf("end of log is %q", got)
	}
	if got := endOfLog(path + ".gone"); !strings.Contains(got, "no such file") {
		t.Errorf("end of a missing log is %q", got)
	}
}
