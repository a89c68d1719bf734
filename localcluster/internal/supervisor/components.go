package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/network"
)

const (
	etcd              = "etcd"
	apiserver         = "kube-apiserver"
	controllerManager = "kube-controller-manager"

	etcdAddress = "http://127.0.0.1:2379"
	// Kubernetes' default of 50 s would make every test of a lost node wait that long.
	nodeMonitorGracePeriod = "20s"
	logTail                = 30
)

// components are the control plane's processes. One that ends unasked ends the cluster, through failed.
type components struct {
	cluster config.Cluster
	failed  chan error

	mutex   sync.Mutex
	program string // what they are started from
	running map[string]*exec.Cmd
	restart map[string]bool
}

func newComponents(cluster config.Cluster) *components {
	return &components{
		cluster: cluster, failed: make(chan error, 3), program: "/proc/self/exe",
		running: map[string]*exec.Cmd{}, restart: map[string]bool{},
	}
}

// arguments are the command line of a component.
func (c *components) arguments(name string) []string {
	pki := c.cluster.Directory.PKI
	flags := map[string][]string{
		etcd: {
			"--data-dir=" + c.cluster.Directory.Etcd(),
			"--listen-client-urls=" + etcdAddress, "--advertise-client-urls=" + etcdAddress,
			"--listen-peer-urls=http://127.0.0.1:2380",
			// Nothing in this cluster is worth waiting for a disk.
			"--unsafe-no-fsync",
		},
		apiserver: {
			"--etcd-servers=" + etcdAddress,
			"--bind-address=" + c.apiAddress(), fmt.Sprintf("--secure-port=%d", apiPort), "--advertise-address=" + network.Gateway,
			"--service-cluster-ip-range=" + network.ServiceRange,
			"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
			"--client-ca-file=" + pki("ca.crt"), "--token-auth-file=" + pki("tokens.csv"),
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--allow-privileged=true",
			"--kubelet-certificate-authority=" + pki("ca.crt"),
			"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"),
			"--kubelet-client-key=" + pki("apiserver-kubelet-client.key"),
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=https://kubernetes.default.svc." + clusterDomain,
			"--service-account-key-file=" + pki("sa.pub"), "--service-account-signing-key-file=" + pki("sa.key"),
			// There is no kube-proxy: webhooks and aggregated APIs are reached at their pods.
			"--enable-aggregator-routing=true",
		},
		controllerManager: {
			"--bind-address=127.0.0.1", "--leader-elect=false",
			"--kubeconfig=" + pki("controller-manager.conf"),
			"--authentication-kubeconfig=" + pki("controller-manager.conf"),
			"--authorization-kubeconfig=" + pki("controller-manager.conf"),
			"--root-ca-file=" + pki("ca.crt"), "--service-account-private-key-file=" + pki("sa.key"),
			"--cluster-signing-cert-file=" + pki("ca.crt"), "--cluster-signing-key-file=" + pki("ca.key"),
			"--use-service-account-credentials=true",
			"--node-monitor-grace-period=" + nodeMonitorGracePeriod,
		},
	}
	return append(flags[name], c.cluster.ComponentFlags[name]...)
}

// apiAddress is where the apiserver listens.
func (c *components) apiAddress() string {
	if c.cluster.FreeServiceAddress {
		return network.Gateway
	}
	return "0.0.0.0"
}

func (c *components) start(name string) error {
	path := c.logFile(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	c.mutex.Lock()
	command := exec.Command(c.program, c.arguments(name)...)
	c.mutex.Unlock()
	command.Args[0] = name
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return err
	}
	c.mutex.Lock()
	c.running[name] = command
	c.mutex.Unlock()
	go c.watch(name, command)
	return nil
}

func (c *components) watch(name string, command *exec.Cmd) {
	err := command.Wait()
	c.mutex.Lock()
	asked := c.restart[name]
	delete(c.restart, name)
	delete(c.running, name)
	c.mutex.Unlock()
	if asked {
		err = c.start(name)
		if err == nil {
			return
		}
	}
	c.failed <- fmt.Errorf("%s ended unexpectedly (%v); %s", name, err, endOfLog(c.logFile(name)))
}

// kill ends a component the hard way; it is started again at once.
func (c *components) kill(name string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	command, found := c.running[name]
	if !found {
		return fmt.Errorf("no component %q is running; there are %s, %s, %s", name, etcd, apiserver, controllerManager)
	}
	c.restart[name] = true
	return command.Process.Kill()
}

// replace ends a component as a service manager does; it is started again at once, from another program.
func (c *components) replace(name, program string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	command, found := c.running[name]
	if !found {
		return fmt.Errorf("%s is not running", name)
	}
	c.program, c.restart[name] = program, true
	return command.Process.Signal(syscall.SIGTERM)
}

func (c *components) logFile(name string) string {
	return filepath.Join(c.cluster.Directory.Logs(), name+".log")
}

func endOfLog(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return fmt.Sprintf("the end of its log %s:\n%s", path, strings.Join(lines[max(0, len(lines)-logTail):], "\n"))
}
