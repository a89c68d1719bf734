// Package config is what the harness tells the supervisor, and where a cluster keeps its files.
package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Cluster describes a cluster to start.
type Cluster struct {
	// Directory holds everything the cluster writes; it is emptied at start.
	Directory Directory `json:"directory"`
	// Listen is the host's address of the API; port 0 takes a free one.
	Listen string `json:"listen"`
	Nodes  []Node `json:"nodes"`
	Image  Image  `json:"image"`
	// FreeServiceAddress leaves the address of Service `kubernetes` to a proxy that somebody puts there; what is
	// not in a pod reaches the apiserver at its other address, as ever.
	FreeServiceAddress bool `json:"freeServiceAddress"`
	// Detach keeps the cluster when standard input closes; without it the cluster ends with its owner.
	Detach bool `json:"detach"`
	// ComponentFlags are added to the command lines of components, by program name.
	ComponentFlags map[string][]string `json:"componentFlags"`
	// Containerd makes containers real ones, of their pods' images.
	Containerd Containerd `json:"containerd"`
}

// Containerd describes what nodes run containers with; without it they are processes that see the host's files.
type Containerd struct {
	// Programs are folders: the first has containerd, its shim and ctr, the second runc.
	Programs []string `json:"programs"`
	// Plugins is the folder with network plugins.
	Plugins string `json:"plugins"`
	// Images are archives of images that every node has.
	Images []string `json:"images"`
}

// IsUsed says whether containers are real.
func (c Containerd) IsUsed() bool { return len(c.Programs) > 0 }

// PauseImage is what keeps the namespaces of a pod, where containers are real.
const PauseImage = "registry.k8s.io/pause:3.9"

// Node is one machine of the cluster.
type Node struct {
	Name         string            `json:"name"`
	Labels       map[string]string `json:"labels"`
	ControlPlane bool              `json:"controlPlane"`
	// Disks are small file systems of their own: folder below one that survives reboots -> size, as 4m. The host sees
	// what is on them only through /proc/PID/root of the cluster's process 1.
	Disks map[string]string `json:"disks"`
	// Kubelet is the program whose kubelet the node runs; empty: the cluster's own.
	Kubelet string `json:"kubelet"`
}

// Image describes what every container finds, whatever image its pod names: the host's own files.
type Image struct {
	// Path are folders put in front of PATH.
	Path []string `json:"path"`
	// Readable are paths that containers without root rights must be able to reach.
	Readable []string `json:"readable"`
}

// Read reads a Cluster from a JSON file and checks it.
func Read(path string) (Cluster, error) {
	cluster := Cluster{Listen: "127.0.0.1:0"}
	content, err := os.ReadFile(path)
	if err != nil {
		return cluster, err
	}
	if err := json.Unmarshal(content, &cluster); err != nil {
		return cluster, fmt.Errorf("%s: %w", path, err)
	}
	return cluster, cluster.check()
}

func (c Cluster) check() error {
	if !filepath.IsAbs(string(c.Directory)) {
		return fmt.Errorf("directory %q must be an absolute path", c.Directory)
	}
	if limit := 100; len(c.Directory.Control()) > limit {
		return fmt.Errorf("directory %s is too long: a path to a socket in it may have %d characters", c.Directory, limit)
	}
	seen := map[string]bool{}
	for _, node := range c.Nodes {
		if err := node.Check(); err != nil {
			return err
		}
		if seen[node.Name] {
			return fmt.Errorf("two nodes are called %s; give each its own name", node.Name)
		}
		seen[node.Name] = true
	}
	return nil
}

// Check tells what is wrong with a node's name or its disks.
func (n Node) Check() error {
	if problems := validation.IsDNS1123Subdomain(n.Name); len(problems) > 0 {
		return fmt.Errorf("node name %q: %s", n.Name, strings.Join(problems, "; "))
	}
	for path := range n.Disks {
		if _, err := NodeDirectory("").Place(path); err != nil {
			return fmt.Errorf("disk of node %s: %w", n.Name, err)
		}
		// The kubelet mounts its folder over itself, without what is mounted below.
		if strings.HasPrefix(path, "/var/lib/kubelet") {
			return fmt.Errorf("disk of node %s: the kubelet would not see %s", n.Name, path)
		}
	}
	return nil
}

// Directory is a cluster's folder on the host.
type Directory string

func (d Directory) join(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

// Lock is held by the supervisor as long as the cluster runs.
func (d Directory) Lock() string { return d.join("lock") }

// Control is the socket the supervisor serves commands on.
func (d Directory) Control() string { return d.join("control.sock") }

// Kubeconfig is the administrator's, for use on the host.
func (d Directory) Kubeconfig() string { return d.join("kubeconfig") }

// PKI holds certificates and the control plane's kubeconfigs.
func (d Directory) PKI(name string) string { return d.join("pki", name) }

// Etcd is the database.
func (d Directory) Etcd() string { return d.join("etcd") }

// Logs is where control plane components log.
func (d Directory) Logs() string { return d.join("logs") }

// Programs has a link for each version of Kubernetes that the cluster has: to the folder of its programs.
func (d Directory) Programs() string { return d.join("programs") }

// Node holds the folders of one node that survive its reboots.
func (d Directory) Node(name string) NodeDirectory { return NodeDirectory(d.join("nodes", name)) }

// NodeDirectory is a node's folder on the host.
type NodeDirectory string

// Folder names inside a NodeDirectory.
const (
	Kubelet    = "kubelet"        // the node's /var/lib/kubelet
	Kubernetes = "etc-kubernetes" // the node's /etc/kubernetes
	Log        = "log"            // the node's /var/log
	GPUShare   = "lib-gpushare"   // the node's /var/lib/gpushare
	Containers = "containers"     // one record for each container
	Programs   = "programs"       // a link to the program whose kubelet the node runs, if it is not the cluster's
	Root       = "root"           // an empty mount point
)

// Join is a path below the folder.
func (d NodeDirectory) Join(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

// surviving are a node's folders that its reboots leave alone, and where they lie in its NodeDirectory.
var surviving = map[string]string{
	"/var/lib/kubelet":  Kubelet,
	"/var/lib/gpushare": GPUShare,
	"/etc/kubernetes":   Kubernetes,
	"/var/log":          Log,
}

// Place is where a path of the node lies, which must be in or below a folder that survives reboots.
func (d NodeDirectory) Place(path string) (string, error) {
	for folder, name := range surviving {
		if relative, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(relative) {
			return d.Join(name, relative), nil
		}
	}
	return "", fmt.Errorf("%q is in no folder that survives reboots", path)
}

// Disks is the file that names the node's disks, for the harness.
func (d NodeDirectory) Disks() string { return d.Join("disks.json") }

// ForgetContainers deletes all records.
func (d NodeDirectory) ForgetContainers() error {
	if err := os.RemoveAll(d.Join(Containers)); err != nil {
		return err
	}
	return os.Mkdir(d.Join(Containers), 0o755)
}

// Create makes the folders.
func (d NodeDirectory) Create() error {
	for _, name := range []string{Kubelet, GPUShare, Kubernetes + "/manifests", Kubernetes + "/pki", Log, Containers, Programs, Root} {
		if err := os.MkdirAll(d.Join(name), 0o755); err != nil {
			return err
		}
	}
	return nil
}
