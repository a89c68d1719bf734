package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/network"
)

const (
	containerdFolder        = "/var/lib/containerd"
	containerdConfiguration = "/etc/containerd/config.toml"
	containerdLog           = "/var/log/containerd.log"
	networkConfiguration    = "/etc/cni/net.d/10-pods.conflist"
	// kubernetesImages is where the kubelet finds images: containerd keeps several users' apart.
	kubernetesImages = "k8s.io"
)

// containerdTOML leaves a container's oom_score_adj within what this process may set: in a machine that is a
// container itself it may not lower it.
const containerdTOML = `version = 2
[grpc]
address = "` + criSocket + `"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "` + config.PauseImage + `"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = %q
conf_dir = "/etc/cni/net.d"
`

// networkJSON connects the pods of a node by a bridge. Nothing is translated: the control plane has routes to them.
const networkJSON = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": false,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}}
]}
`

// runContainerd runs containerd in the node until ctx ends.
func runContainerd(ctx context.Context, settings Settings) error {
	if err := configureContainerd(settings); err != nil {
		return err
	}
	log, err := os.OpenFile(containerdLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	containerd := exec.CommandContext(ctx, packaged(settings, "usr/bin/containerd"), "--config", containerdConfiguration)
	containerd.Env = append(os.Environ(), programPath(settings), libraryPath(settings))
	containerd.Stdout, containerd.Stderr = log, log
	containerd.Cancel = func() error { return containerd.Process.Signal(syscall.SIGTERM) }
	if err := containerd.Run(); ctx.Err() == nil {
		return fmt.Errorf("containerd: %w, see %s", err, containerdLog)
	}
	return nil
}

func configureContainerd(settings Settings) error {
	files := map[string]string{
		containerdConfiguration: fmt.Sprintf(containerdTOML, packaged(settings, "usr/lib/cni")),
		networkConfiguration:    fmt.Sprintf(networkJSON, network.PodRange(settings.Index)),
	}
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packaged is where the node finds a file of the packages.
func packaged(settings Settings, path string) string {
	return filepath.Join(imageFolder, settings.Containerd.Packages, path)
}

// programPath lets containerd find its shim and runc, and those what the host has.
func programPath(settings Settings) string {
	own := []string{packaged(settings, "usr/bin"), packaged(settings, "usr/sbin"), os.Getenv("PATH")}
	return "PATH=" + strings.Join(own, ":")
}

// libraryPath names the libraries that came with the packages, since the host had not got them.
func libraryPath(settings Settings) string {
	folders, _ := filepath.Glob(packaged(settings, "usr/lib/*-linux-gnu"))
	return "LD_LIBRARY_PATH=" + strings.Join(folders, ":")
}

// importImages puts archives where the kubelet finds them: nothing is pulled.
func importImages(settings Settings) error {
	for _, archive := range settings.Containerd.Images {
		source := filepath.Join(imageFolder, archive)
		arguments := []string{"--address", criSocket, "--namespace", kubernetesImages, "images", "import", source}
		if output, err := exec.Command(packaged(settings, "usr/bin/ctr"), arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("import image %s: %w: %s", archive, err, output)
		}
	}
	return nil
}
