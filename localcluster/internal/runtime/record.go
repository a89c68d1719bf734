package runtime

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// record is what a test on the host can read of a container, in <Config.Records>/<id>.json.
type record struct {
	ID        string            `json:"id"`
	Namespace string            `json:"namespace"`
	Pod       string            `json:"pod"`
	PodUID    string            `json:"podUID"`
	Container string            `json:"container"`
	Attempt   uint32            `json:"attempt"`
	PID       int               `json:"pid"` // in the node's PID namespace; 0 before the start
	Env       map[string]string `json:"env"`
	Mounts    []hostPath        `json:"mounts"`
	Devices   []hostPath        `json:"devices"`
	CDI       []string          `json:"cdiDevices"` // recorded only: nothing is injected by it
	State     string            `json:"state"`      // created, running or exited
	ExitCode  int32             `json:"exitCode"`
	StartedAt time.Time         `json:"startedAt"`
}

// hostPath is a path of the node's that the container has at another one.
type hostPath struct {
	Host      string `json:"host"`
	Container string `json:"container"`
	ReadOnly  bool   `json:"readOnly"`
}

// record describes the container; c.mu must be held.
func (c *container) record() record {
	pod := c.sandbox.config.GetMetadata()
	return record{
		ID:        c.id,
		Namespace: pod.GetNamespace(),
		Pod:       pod.GetName(),
		PodUID:    pod.GetUid(),
		Container: c.config.GetMetadata().GetName(),
		Attempt:   c.config.GetMetadata().GetAttempt(),
		PID:       c.pid(),
		Env:       envMap(c.process.env),
		Mounts:    mountPaths(c.config.GetMounts()),
		Devices:   devicePaths(c.config.GetDevices()),
		CDI:       cdiNames(c.config.GetCDIDevices()),
		State:     stateNames[c.state],
		ExitCode:  c.exitCode,
		StartedAt: time.Unix(0, c.startedAt).UTC(),
	}
}

var stateNames = map[cri.ContainerState]string{
	cri.ContainerState_CONTAINER_CREATED: "created",
	cri.ContainerState_CONTAINER_RUNNING: "running",
	cri.ContainerState_CONTAINER_EXITED:  "exited",
}

func envMap(env []string) map[string]string {
	variables := make(map[string]string, len(env))
	for _, variable := range env {
		key, value, _ := strings.Cut(variable, "=")
		variables[key] = value
	}
	return variables
}

func mountPaths(mounts []*cri.Mount) []hostPath {
	paths := make([]hostPath, 0, len(mounts))
	for _, m := range mounts {
		paths = append(paths, hostPath{Host: m.GetHostPath(), Container: m.GetContainerPath(), ReadOnly: m.GetReadonly()})
	}
	return paths
}

func devicePaths(devices []*cri.Device) []hostPath {
	paths := make([]hostPath, 0, len(devices))
	for _, d := range devices {
		readOnly := !strings.Contains(d.GetPermissions(), "w")
		paths = append(paths, hostPath{Host: d.GetHostPath(), Container: d.GetContainerPath(), ReadOnly: readOnly})
	}
	return paths
}

func cdiNames(devices []*cri.CDIDevice) []string {
	names := make([]string, 0, len(devices))
	for _, device := range devices {
		names = append(names, device.GetName())
	}
	return names
}

func recordPath(directory, id string) string { return filepath.Join(directory, id+".json") }

// write replaces the file at path at once, so that a reader never sees half a record.
func (r record) write(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, text, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
