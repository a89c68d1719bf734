package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/network"
	"gpushare.io/localcluster/internal/node"
)

const (
	controlPlaneLabel = "node-role.kubernetes.io/control-plane"
	// powerOffPatience is above the 30 s that Kubernetes grants a pod by default.
	powerOffPatience = 45 * time.Second
	registerPatience = 2 * time.Minute
)

var errUnknownNode = errors.New("no such node")

// machines are the cluster's nodes, seen as computers that are on or off.
type machines struct {
	cluster config.Cluster
	pki     *clusterPKI
	client  kubernetes.Interface

	mutex sync.Mutex
	known []*machine
	next  int
}

type machine struct {
	config.Node
	index  int
	folder config.NodeDirectory

	mutex   sync.Mutex
	process *exec.Cmd     // nil while the machine is off
	off     chan struct{} // closed when process has ended
	failure string        // why it went off, if nobody asked for that
	asked   bool
}

func newMachines(cluster config.Cluster, pki *clusterPKI, client kubernetes.Interface) *machines {
	return &machines{cluster: cluster, pki: pki, client: client}
}

func (m *machine) address() string { return network.NodeAddress(m.index) }

func (ms *machines) list() []*machine {
	ms.mutex.Lock()
	defer ms.mutex.Unlock()
	return slices.Clone(ms.known)
}

func (ms *machines) find(name string) (*machine, error) {
	for _, machine := range ms.list() {
		if machine.Name == name {
			return machine, nil
		}
	}
	return nil, fmt.Errorf("%w: %q", errUnknownNode, name)
}

// add installs a new machine and switches it on.
func (ms *machines) add(ctx context.Context, wanted config.Node) error {
	if err := wanted.Check(); err != nil {
		return err
	}
	if _, err := ms.find(wanted.Name); err == nil {
		return fmt.Errorf("there is a node %q already", wanted.Name)
	}
	ms.mutex.Lock()
	added := &machine{Node: wanted, index: ms.next, folder: ms.cluster.Directory.Node(wanted.Name)}
	ms.next++
	ms.known = append(ms.known, added)
	ms.mutex.Unlock()
	if err := ms.install(added); err != nil {
		return err
	}
	return ms.start(ctx, added)
}

// start boots a machine; one that is on stays on.
func (ms *machines) start(ctx context.Context, m *machine) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.process != nil {
		return nil
	}
	process, err := ms.boot(m)
	if err != nil {
		return fmt.Errorf("boot node %s: %w", m.Name, err)
	}
	m.process, m.off, m.failure, m.asked = process, make(chan struct{}), "", false
	go m.watch(process, m.off)
	go ms.label(ctx, m)
	return nil
}

func (ms *machines) boot(m *machine) (*exec.Cmd, error) {
	// No container outlives its machine; the records of the last run would say otherwise.
	if err := m.folder.ForgetContainers(); err != nil {
		return nil, err
	}
	if err := makeCgroup(ms.cgroup(m)); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(m.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	process := exec.Command("/proc/self/exe", node.InitCommand)
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS,
		Setsid:     true,
	}
	settings, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	// The machine waits for its settings, so its network is there before it goes on; without them it ends.
	defer settings.Close()
	if err := network.Connect(process.Process.Pid, m.index); err != nil {
		return nil, errors.Join(err, process.Process.Kill())
	}
	return process, json.NewEncoder(settings).Encode(ms.settings(m))
}

func (ms *machines) settings(m *machine) node.Settings {
	return node.Settings{
		Name:         m.Name,
		Address:      m.address(),
		Folder:       m.folder,
		Image:        ms.cluster.Image,
		Index:        m.index,
		Containerd:   ms.cluster.Containerd,
		KubeletFlags: ms.cluster.ComponentFlags["kubelet"],
		Programs:     ms.cluster.Directory.Programs(),
	}
}

func (m *machine) watch(process *exec.Cmd, off chan struct{}) {
	err := process.Wait()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.process = nil
	if !m.asked {
		m.failure = fmt.Sprintf("node %s ended unexpectedly (%v); %s", m.Name, err, endOfLog(m.logFile()))
	}
	close(off)
}

func (m *machine) logFile() string { return m.folder.Join(config.Log, "node.log") }

// label gives the Node what a kubelet may not give itself.
func (ms *machines) label(ctx context.Context, m *machine) {
	labels := wantedLabels(m.Node)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil || len(labels) == 0 {
		return
	}
	_ = wait.PollUntilContextTimeout(ctx, pollInterval, registerPatience, true, func(ctx context.Context) (bool, error) {
		_, err := ms.client.CoreV1().Nodes().Patch(ctx, m.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err == nil, nil
	})
}

func wantedLabels(wanted config.Node) map[string]string {
	labels := map[string]string{}
	for key, value := range wanted.Labels {
		labels[key] = value
	}
	if wanted.ControlPlane {
		labels[controlPlaneLabel] = ""
	}
	return labels
}

// signal passes a signal to a machine's process 1; it returns a channel that closes when the machine is off.
func (m *machine) signal(signal syscall.Signal, endsMachine bool) (<-chan struct{}, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.process == nil {
		return nil, fmt.Errorf("node %s is off; start it first", m.Name)
	}
	m.asked = m.asked || endsMachine
	return m.off, m.process.Process.Signal(signal)
}

// stop shuts a machine down in good order, like its power button.
func (m *machine) stop() error {
	off, err := m.signal(syscall.SIGTERM, true)
	if err != nil {
		return err
	}
	select {
	case <-off:
		return nil
	case <-time.After(powerOffPatience):
		return m.kill()
	}
}

// kill cuts a machine's power.
func (m *machine) kill() error {
	off, err := m.signal(syscall.SIGKILL, true)
	if err != nil {
		return err
	}
	<-off
	return nil
}

// signalAgent tells a machine that is on what to do with its kubelet.
func (m *machine) signalAgent(signal syscall.Signal) error {
	_, err := m.signal(signal, false)
	return err
}

// remove takes a machine and its Node away for good.
func (ms *machines) remove(ctx context.Context, m *machine) error {
	if m.isOn() {
		if err := m.kill(); err != nil {
			return err
		}
	}
	err := ms.client.CoreV1().Nodes().Delete(ctx, m.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	ms.mutex.Lock()
	defer ms.mutex.Unlock()
	ms.known = slices.DeleteFunc(ms.known, func(other *machine) bool { return other == m })
	return errors.Join(m.unmountDisks(), os.RemoveAll(string(m.folder)))
}

func (m *machine) isOn() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.process != nil
}
