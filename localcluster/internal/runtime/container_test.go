package runtime

import (
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestContainerRunsItsCommandAndLogsBothStreams(t *testing.T) {
	ended := startNode(t).pod("web").run(script("echo out; echo err >&2; printf tail"))

	status := ended.status()
	equal(t, "exit code", status.GetExitCode(), 0)
	equal(t, "reason", status.GetReason(), "Completed")
	if status.GetStartedAt() < status.GetCreatedAt() || status.GetFinishedAt() < status.GetStartedAt() {
		t.Errorf("times are out of order: %v", status)
	}
	lines := map[string]bool{}
	for _, line := range ended.logLines() {
		lines[line] = true
	}
	for _, want := range []string{"stdout F out", "stderr F err", "stdout P tail"} {
		if !lines[want] {
			t.Errorf("no line %q in the log %v", want, lines)
		}
	}
	_ = cri.ContainerState_CONTAINER_EXITED
}
