//go:build !before1.36

// Package streaming is the server of containers' streams that Kubernetes has in other packages before 1.36.
package streaming

import (
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// Server hands out addresses of streams, and serves them.
type Server = streaming.Server

// Runtime is what a server takes streams to.
type Runtime = streaming.Runtime

// TerminalSize is the size of a terminal in characters.
type TerminalSize = remotecommand.TerminalSize

// NewServer returns a server whose streams are served at an address.
func NewServer(address string, runtime Runtime) (Server, error) {
	config := streaming.DefaultConfig
	config.Addr = address
	return streaming.NewServer(config, runtime)
}
