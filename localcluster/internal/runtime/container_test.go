package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestContainerRunsItsCommandAndLogsBothStreams(t *testing.T) {
	ended := startNode(t).pod("web").run(script("echo out; echo err >&2; printf tail"))

	state := ended.status()
	equal(t, "exit code", state.GetExitCode(), 0)
	equal(t, "reason", state.GetReason(), "Completed")
	if state.GetStartedAt() < state.GetCreatedAt() || state.GetFinishedAt() < state.GetStartedAt() {
		t.Errorf("times are out of order: %v", state)
	}
	lines := ended.logLines()
	for _, want := range []string{"stdout F out", "stderr F err", "stdout P tail"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in the log %q", want, lines)
		}
	}
}

func TestExitStatus(t *testing.T) {
	cases := map[string]struct {
		script string
		code   int32
		reason string
	}{
		"of a success":              {"true", 0, "Completed"},
		"of a failure":              {"exit 3", 3, "Error"},
		"of a program that crashed": {"kill -SEGV $$", 139, "Error"},
	}
	pod := startNode(t).pod("web")
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			state := pod.run(script(test.script)).status()
			equal(t, "exit code", state.GetExitCode(), test.code)
			equal(t, "reason", state.GetReason(), test.reason)
		})
	}
}

func TestMissingProgramIsAStartError(t *testing.T) {
	cases := map[string]struct {
		command []string
		code    int32
		message string
	}{
		"not in PATH":   {[]string{"no-such-program"}, 127, `"no-such-program": executable file not found`},
		"no such file":  {[]string{"/bin/no-such-program"}, 127, `"/bin/no-such-program": executable file not found`},
		"not a program": {[]string{"/etc/passwd"}, 127, `"/etc/passwd": executable file not found`},
	}
	pod := startNode(t).pod("web")
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			failed := pod.create(script("", func(c *cri.ContainerConfig) { c.Command, c.Args = test.command, nil }))
			err := failed.start()
			if err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("start: got %v, want %q", err, test.message)
			}
			state := failed.status()
			equal(t, "state", state.GetState(), cri.ContainerState_CONTAINER_EXITED)
			equal(t, "reason", state.GetReason(), "StartError")
			equal(t, "exit code", state.GetExitCode(), test.code)
		})
	}
}

func TestMissingHostPathIsAStartError(t *testing.T) {
	failed := startNode(t).pod("web").create(script("true", withMount("/no/such/folder", "/data", false)))
	if err := failed.start(); err == nil || !strings.Contains(err.Error(), "/no/such/folder at /data") {
		t.Errorf("start: got %v, want an error that names the mount", err)
	}
	equal(t, "exit code", failed.status().GetExitCode(), 128)
}

func TestContainerIsStartedOnce(t *testing.T) {
	running := startNode(t).pod("web").start(script("sleep infinity"))
	equal(t, "code", status.Code(running.start()), codes.FailedPrecondition)
}

func TestStopEndsAProgramThatHandlesNoSignalAtOnce(t *testing.T) {
	running := startNode(t).pod("web").start(script("exec sleep infinity"))
	running.stopWithin(10)
	equal(t, "exit code", running.status().GetExitCode(), 143)
}

func TestStopLetsAProgramEndInItsGracePeriod(t *testing.T) {
	running := startNode(t).pod("web").start(script("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done"))
	running.awaitOutput("ready")
	running.stopWithin(10)
	equal(t, "exit code", running.status().GetExitCode(), 7)
	equal(t, "output", running.output(), "ready\nbye\n")
}

func TestStopKillsAfterTheGracePeriod(t *testing.T) {
	running := startNode(t).pod("web").start(script("trap '' TERM; echo ready; while :; do sleep 0.05; done"))
	running.awaitOutput("ready")
	before := time.Now()
	running.stopWithin(1)
	equal(t, "exit code", running.status().GetExitCode(), 137)
	if waited := time.Since(before); waited < time.Second {
		t.Errorf("killed after %s, want 1s", waited)
	}
}

func TestStopWithoutGraceKills(t *testing.T) {
	running := startNode(t).pod("web").start(script("trap '' TERM; sleep infinity"))
	running.stopWithin(0)
	equal(t, "exit code", running.status().GetExitCode(), 137)
}

func TestStopGivesUpWithItsCaller(t *testing.T) {
	running := startNode(t).pod("web").start(script("trap '' TERM; echo ready; sleep infinity & wait; wait"))
	running.awaitOutput("ready")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := running.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: running.id, Timeout: 600})
	equal(t, "code", status.Code(err), codes.DeadlineExceeded)
	equal(t, "state", running.status().GetState(), cri.ContainerState_CONTAINER_RUNNING)
}

func TestEndOfAContainerIsTheEndOfAllItsProcesses(t *testing.T) {
	// setsid and the double fork take the process out of the container's session and parentage.
	ended := startNode(t).pod("web").run(script(
		"(setsid sh -c 'echo $$ > /tmp/pid; exec sleep infinity' &) ; while [ ! -s /tmp/pid ]; do sleep 0.02; done; cat /tmp/pid",
	))
	pid := strings.TrimSpace(ended.output())
	if pid == "" {
		t.Fatal("the process did not begin")
	}
	state, err := os.ReadFile("/proc/" + pid + "/status")
	if err == nil && !strings.Contains(string(state), "State:\tZ") {
		t.Errorf("process %s is left over:\n%s", pid, state)
	}
}

func TestContainerWithoutACommandPauses(t *testing.T) {
	running := startNode(t).pod("web").start(script("", func(c *cri.ContainerConfig) { c.Command, c.Args = nil, nil }))
	eventually(t, "the program to handle signals", func() bool {
		return len(running.exec("pgrep", "-P", fmt.Sprint(running.record().PID)).GetStdout()) > 0
	})
	running.stopWithin(10)
	equal(t, "exit code", running.status().GetExitCode(), 0)
}

func TestRecordFollowsTheContainer(t *testing.T) {
	node := startNode(t)
	created := node.pod("web").create(script("sleep infinity", withEnv("GPU_IDS", "a,b"), withDevices))
	equal(t, "state", created.record().State, "created")
	equal(t, "device", created.record().Devices[0], hostPath{Host: "/dev/null", Container: "/dev/gcu0", ReadOnly: true})
	equal(t, "CDI name", created.record().CDI[0], "example.com/card=a")

	must(t, created.start())
	running := created.record()
	equal(t, "state", running.State, "running")
	equal(t, "pod", running.Namespace+"/"+running.Pod+"/"+running.Container, "default/web/main")
	equal(t, "pod UID", running.PodUID, "uid-web")
	equal(t, "variable", running.Env["GPU_IDS"], "a,b")
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", running.PID))
	must(t, err)
	equal(t, "command of the process", string(command), "sh\x00-c\x00sleep infinity\x00")

	created.stopWithin(0)
	exited := created.record()
	equal(t, "state", exited.State, "exited")
	equal(t, "exit code", exited.ExitCode, 137)
	equal(t, "process", exited.PID, running.PID)
	equal(t, "start", exited.StartedAt, running.StartedAt)
}

func (c *task) record() (r record) {
	c.Helper()
	text, err := os.ReadFile(recordPath(c.config().Records, c.id))
	must(c.T, err)
	must(c.T, json.Unmarshal(text, &r))
	return r
}

func (c *task) config() Config { return c.node.config }

func TestRemoveLeavesNothingBehind(t *testing.T) {
	node := startNode(t)
	running := node.pod("web").start(script("sleep infinity"))
	_, err := node.RemoveContainer(node.ctx(), &cri.RemoveContainerRequest{ContainerId: running.id})
	must(t, err)
	for _, directory := range []string{node.config.StateDir, node.config.Records} {
		left, err := os.ReadDir(directory)
		must(t, err)
		equal(t, "entries in "+directory, len(left), 0)
	}
	_, err = node.ContainerStatus(node.ctx(), &cri.ContainerStatusRequest{ContainerId: running.id})
	equal(t, "code", status.Code(err), codes.NotFound)
	_, err = node.RemoveContainer(node.ctx(), &cri.RemoveContainerRequest{ContainerId: running.id})
	must(t, err)
	_, err = node.StopContainer(node.ctx(), &cri.StopContainerRequest{ContainerId: running.id})
	must(t, err)
}

func TestListContainersHonoursItsFilter(t *testing.T) {
	node := startNode(t)
	web, db := node.pod("web"), node.pod("db")
	running := web.start(script("sleep infinity"))
	ended := db.run(script("true", func(c *cri.ContainerConfig) { c.Labels = map[string]string{"name": "other"} }))
	cases := map[string]struct {
		filter *cri.ContainerFilter
		want   []string
	}{
		"none":             {nil, []string{running.id, ended.id}},
		"by id":            {&cri.ContainerFilter{Id: ended.id}, []string{ended.id}},
		"by sandbox":       {&cri.ContainerFilter{PodSandboxId: web.id}, []string{running.id}},
		"by state":         {&cri.ContainerFilter{State: &cri.ContainerStateValue{State: 2}}, []string{ended.id}},
		"by label":         {&cri.ContainerFilter{LabelSelector: map[string]string{"name": "main"}}, []string{running.id}},
		"by unknown label": {&cri.ContainerFilter{LabelSelector: map[string]string{"absent": ""}}, nil},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			response, err := node.ListContainers(node.ctx(), &cri.ListContainersRequest{Filter: test.filter})
			must(t, err)
			var got []string
			for _, item := range response.GetContainers() {
				got = append(got, item.GetId())
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestHundredContainersAtOnce(t *testing.T) {
	node := startNode(t)
	pod := node.pod("web")
	var group sync.WaitGroup
	before := time.Now()
	for range 100 {
		group.Go(func() {
			request := &cri.CreateContainerRequest{PodSandboxId: pod.id, Config: script("exec sleep infinity")}
			response, err := node.CreateContainer(node.ctx(), request)
			if err == nil {
				_, err = node.StartContainer(node.ctx(), &cri.StartContainerRequest{ContainerId: response.GetContainerId()})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	t.Logf("started in %s", time.Since(before))
	before = time.Now()
	_, err := node.RemovePodSandbox(node.ctx(), &cri.RemovePodSandboxRequest{PodSandboxId: pod.id})
	must(t, err)
	t.Logf("removed in %s", time.Since(before))
}

func TestServeEndsItsContainersAndItsOwnWork(t *testing.T) {
	before := goruntime.NumGoroutine()
	node := startNode(t)
	running := node.pod("web").start(script("sleep infinity"))
	running.exec("true")
	process := filepath.Join("/proc", fmt.Sprint(running.record().PID))
	node.stop()
	must(t, node.connection.Close())
	if _, err := os.Stat(process); err == nil {
		t.Errorf("%s is left over", process)
	}
	eventually(t, "the end of all goroutines", func() bool { return goruntime.NumGoroutine() <= before })
}

func withMount(source, target string, readOnly bool) func(*cri.ContainerConfig) {
	return func(c *cri.ContainerConfig) {
		c.Mounts = append(c.Mounts, &cri.Mount{HostPath: source, ContainerPath: target, Readonly: readOnly})
	}
}

func withDevices(c *cri.ContainerConfig) {
	c.Devices = []*cri.Device{{HostPath: "/dev/null", ContainerPath: "/dev/gcu0", Permissions: "r"}}
	c.CDIDevices = []*cri.CDIDevice{{Name: "example.com/card=a"}}
}

func withEnv(key, value string) func(*cri.ContainerConfig) {
	return func(c *cri.ContainerConfig) {
		pair := &cri.KeyValue{Key: key}
		put(&pair.Value, value)
		c.Envs = append(c.Envs, pair)
	}
}

// put stores text in a field that is of another type before Kubernetes 1.34.
func put[T ~string | ~[]byte](field *T, text string) { *field = T(text) }

func withSecurity(security *cri.LinuxContainerSecurityContext) func(*cri.ContainerConfig) {
	return func(c *cri.ContainerConfig) { c.Linux.SecurityContext = security }
}
