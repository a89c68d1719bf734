package node

import (
	"slices"
	"testing"
	"time"

	"gpushare.io/localcluster/internal/config"
)

func TestAStoppedKeeperStartsNoKubelet(t *testing.T) {
	keeper := newKubeletKeeper(nil)
	keeper.stop()
	if kubelet, err := keeper.start(); kubelet != nil || err != nil {
		t.Errorf("started %v, error %v", kubelet, err)
	}
}

func TestAKubeletThatIsHeldBackStartsWhenItIsReleased(t *testing.T) {
	keeper := newKubeletKeeper(nil)
	keeper.hold()
	passed := make(chan struct{})
	go func() {
		keeper.awaitRelease()
		close(passed)
	}()
	select {
	case <-passed:
		t.Fatal("it was not held back")
	case <-time.After(50 * time.Millisecond):
	}
	keeper.release()
	select {
	case <-passed:
	case <-time.After(time.Minute):
		t.Fatal("it was not released")
	}
	keeper.awaitRelease() // and once released it stays so
	keeper.release()
}

func TestAKeeperThatHoldsTheKubeletBackCanBeStopped(t *testing.T) {
	keeper := newKubeletKeeper(nil)
	keeper.hold()
	ended := make(chan struct{})
	go func() {
		keeper.run()
		close(ended)
	}()
	keeper.stop()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it still waits")
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
