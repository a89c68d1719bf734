package node

import (
	"slices"
	"testing"

	"gpushare.io/localcluster/internal/config"
)

func TestAStoppedKeeperStartsNoKubelet(t *testing.T) {
	keeper := &kubeletKeeper{}
	keeper.stop()
	if kubelet, err := keeper.start(); kubelet != nil || err != nil {
		t.Errorf("started %v, error %v", kubelet, err)
	}
}

func TestExtraKubeletFlagsComeLastSoThatTheyWin(t *testing.T) {
	flags := kubeletFlags(Settings{Name: "gpu-1", Address: "172.30.0.11", KubeletFlags: []string{"--v=4"}})
	if !slices.Contains(flags, "--hostname-override=gpu-1") || flags[len(flags)-1] != "--v=4" {
		t.Errorf("flags are %q", flags)
	}
}

func TestTheHostsFoldersThatSurviveAreMountedAfterWhatWouldHideThem(t *testing.T) {
	settings := Settings{Folder: config.Directory("/cluster").Node("gpu-1")}
	var targets []string
	for _, step := range mounts(settings, "/root") {
		targets = append(targets, step.target)
	}
	for below, above := range map[string]string{"/root/run": "/root" + recordFolder, "/root/dev": "/root/dev/shm"} {
		if slices.Index(targets, below) > slices.Index(targets, above) {
			t.Errorf("%s would hide %s", below, above)
		}
	}
	if !slices.Contains(targets, "/root/var/lib/kubelet") {
		t.Errorf("no /var/lib/kubelet in %q", targets)
	}
}
