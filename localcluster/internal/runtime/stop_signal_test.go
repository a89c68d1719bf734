//go:build !before1.33

package runtime

import (
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestStopSendsTheSignalThatThePodNames(t *testing.T) {
	const usr1 = cri.Signal(29) // its name is another one in each of 1.36 and 1.37
	running := startNode(t).pod("web").start(script(
		"trap 'exit 5' USR1; echo ready; while :; do sleep 0.05; done",
		func(c *cri.ContainerConfig) { c.StopSignal = usr1 },
	))
	running.awaitOutput("ready")
	running.stopWithin(10)
	equal(t, "exit code", running.status().GetExitCode(), 5)
}
