// Package node is one machine of the cluster, from the inside: its process 1, its file system, and the agent
// that runs the container runtime and keeps the kubelet alive.
package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/network"
)

const (
	// InitCommand runs process 1 of a node; it reads Settings from standard input.
	InitCommand = "node-init"
	// AgentCommand runs the agent; process 1 starts it.
	AgentCommand = "node-agent"
	// RestartKubelet makes a node kill its kubelet and start it again.
	RestartKubelet = syscall.SIGHUP
	// StopKubelet makes a node end its kubelet and leave it so; its containers go on.
	StopKubelet = syscall.SIGUSR1
	// StartKubelet makes a node start a kubelet that was stopped.
	StartKubelet = syscall.SIGUSR2
)

// passedOn are the signals that a node's process 1 leaves to the agent.
var passedOn = []os.Signal{syscall.SIGTERM, RestartKubelet, StopKubelet, StartKubelet}

// Settings are what a node must know to boot.
type Settings struct {
	Name         string               `json:"name"`
	Address      string               `json:"address"`
	Folder       config.NodeDirectory `json:"folder"`
	Image        config.Image         `json:"image"`
	Index        int                  `json:"index"` // its place among the cluster's nodes
	Containerd   config.Containerd    `json:"containerd"`
	KubeletFlags []string             `json:"kubeletFlags"`
	Programs     string               `json:"programs"` // see config.Directory.Programs
}

func readSettings() (Settings, error) {
	var settings Settings
	err := json.NewDecoder(os.Stdin).Decode(&settings)
	return settings, err
}

// RunInit boots the node and stays its process 1: it adopts and reaps orphans, which the agent could not do
// without stealing the exit codes of its own children.
func RunInit() error {
	settings, err := readSettings()
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	if err := unix.Sethostname([]byte(settings.Name)); err != nil {
		return err
	}
	if err := network.SetUpNode(settings.Address); err != nil {
		return err
	}
	if err := enterFilesystem(settings); err != nil {
		return err
	}
	agent, err := startAgent(settings)
	if err != nil {
		return err
	}
	go forwardSignals(agent)
	return reapUntil(agent.Pid)
}

func startAgent(settings Settings) (*os.Process, error) {
	encoded, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	agent := exec.Command("/proc/self/exe", AgentCommand)
	agent.Stdout, agent.Stderr = os.Stdout, os.Stderr
	agent.Stdin = bytes.NewReader(encoded)
	if err := agent.Start(); err != nil {
		return nil, err
	}
	return agent.Process, nil
}

func forwardSignals(agent *os.Process) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, passedOn...)
	for received := range signals {
		_ = agent.Signal(received)
	}
}

// reapUntil collects dead children until the one with this pid is among them.
func reapUntil(pid int) error {
	for {
		var status unix.WaitStatus
		dead, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for children: %w", err)
		case dead == pid && status.Exited() && status.ExitStatus() == 0:
			return nil
		case dead == pid:
			return fmt.Errorf("the node's agent ended: status %#x", uint32(status))
		}
	}
}
