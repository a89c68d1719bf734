package runtime

import (
	"errors"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestProcessThatKeepsForkingIsKilledWithAllItsChildren(t *testing.T) {
	const fork = "setsid sh -c 'while :; do setsid sleep infinity & sleep 0.002; done' & while [ ! -e /tmp/go ]; do sleep 0.01; done"
	running := startNode(t).pod("web").start(script(fork))
	name, err := os.Readlink("/proc/" + strconv.Itoa(running.record().PID) + "/ns/mnt")
	must(t, err)
	eventually(t, "some processes", func() bool { return len(processesIn(name)) > 5 })
	running.exec("touch", "/tmp/go")
	running.awaitExit()
	equal(t, "processes left", strings.Join(processesIn(name), " "), "")
}

// processesIn lists the processes in the mount namespace of this name.
func processesIn(name string) (found []string) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if place, err := os.Readlink("/proc/" + entry.Name() + "/ns/mnt"); err == nil && place == name {
			found = append(found, entry.Name())
		}
	}
	return found
}

func TestContainersHaveMountNamespacesOfTheirOwn(t *testing.T) {
	pod := startNode(t).pod("web")
	names := map[string]bool{}
	for range 3 {
		running := pod.start(script("sleep infinity"))
		names[string(running.exec("readlink", "/proc/self/ns/mnt").GetStdout())] = true
	}
	home, err := os.Readlink("/proc/self/ns/mnt")
	must(t, err)
	equal(t, "namespaces", len(names), 3)
	equal(t, "the node's is among them", names[home+"\n"], false)
}

func TestContainerDoesNotSeeTheNodesOldRoot(t *testing.T) {
	node := startNode(t)
	mounts := node.pod("web").run(script("cut -d' ' -f5 /proc/self/mountinfo")).output()
	if strings.Contains(mounts, node.config.Lower) {
		t.Errorf("mounts of the node are left:\n%s", mounts)
	}
}

func TestOwnThreadIsNeverTheMainOne(t *testing.T) {
	var seen sync.Map
	var group sync.WaitGroup
	for range 200 {
		group.Go(func() {
			_ = onOwnThread(func() error { seen.Store(unix.Gettid(), true); return nil })
		})
	}
	group.Wait()
	if _, main := seen.Load(unix.Getpid()); main {
		t.Error("work that spoils its thread ran on the main one")
	}
}

func TestOwnThreadReturnsTheError(t *testing.T) {
	want := errors.New("reason")
	equal(t, "error", onOwnThread(func() error { return want }), want)
}

func TestOwnThreadEnds(t *testing.T) {
	var thread int
	must(t, onOwnThread(func() error { thread = unix.Gettid(); return nil }))
	eventually(t, "the thread's end", func() bool {
		goruntime.Gosched()
		_, err := os.Stat("/proc/self/task/" + strconv.Itoa(thread))
		return errors.Is(err, os.ErrNotExist)
	})
}

func TestCallsInAnyOrderAtOnce(t *testing.T) {
	node := startNode(t)
	pod := node.pod("web")
	for range 20 {
		request := &cri.CreateContainerRequest{PodSandboxId: pod.id, Config: script("echo x; sleep infinity")}
		response, err := node.CreateContainer(node.ctx(), request)
		must(t, err)
		id := response.GetContainerId()
		var group sync.WaitGroup
		for _, call := range []func(){
			func() { _, _ = node.StartContainer(node.ctx(), &cri.StartContainerRequest{ContainerId: id}) },
			func() {
				_, _ = node.ExecSync(node.ctx(), &cri.ExecSyncRequest{ContainerId: id, Cmd: []string{"sleep", "9"}})
			},
			func() { _, _ = node.StopContainer(node.ctx(), &cri.StopContainerRequest{ContainerId: id, Timeout: 5}) },
			func() { _, _ = node.ContainerStatus(node.ctx(), &cri.ContainerStatusRequest{ContainerId: id}) },
			func() { _, _ = node.RemoveContainer(node.ctx(), &cri.RemoveContainerRequest{ContainerId: id}) },
		} {
			group.Go(call)
		}
		group.Wait()
	}
	left, err := os.ReadDir(node.config.StateDir)
	must(t, err)
	equal(t, "containers left on disk", len(left), 0)
	listed, err := node.ListContainers(node.ctx(), &cri.ListContainersRequest{})
	must(t, err)
	equal(t, "containers left", len(listed.GetContainers()), 0)
}
