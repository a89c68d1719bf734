package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"gpushare.io/localcluster/internal/config"
	"gpushare.io/localcluster/internal/node"
)

// Status is what GET /status answers. PIDs are those inside the cluster's own PID namespace.
type Status struct {
	// Missing says what the cluster waits for; it is ready when there is nothing.
	Missing    []string       `json:"missing"`
	Components map[string]int `json:"components"`
	Nodes      []NodeStatus   `json:"nodes"`
}

// NodeStatus describes one node as a machine.
type NodeStatus struct {
	config.Node
	Address string `json:"address"`
	// PID is 0 while the machine is off.
	PID int `json:"pid"`
	// Failure says why the machine went off if nobody asked for that.
	Failure string `json:"failure"`
}

// serveControl serves status and commands: HTTP on a Unix socket, JSON in and out, an error as plain text.
func serveControl(listener net.Listener, i *inner) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(answer).Encode(i.status(request))
	})
	mux.HandleFunc("POST /nodes", handler(func(request *http.Request) error {
		var wanted config.Node
		if err := json.NewDecoder(request.Body).Decode(&wanted); err != nil {
			return err
		}
		return i.machines.add(i.context, wanted)
	}))
	mux.HandleFunc("POST /nodes/{name}/{action}", handler(i.nodeAction))
	mux.HandleFunc("POST /components/{name}/kill", handler(func(request *http.Request) error {
		return i.components.kill(request.PathValue("name"))
	}))
	mux.HandleFunc("POST /control-plane/upgrade", handler(func(request *http.Request) error {
		var wanted Upgrade
		if err := json.NewDecoder(request.Body).Decode(&wanted); err != nil {
			return err
		}
		return i.upgrade(wanted)
	}))
	return http.Serve(listener, mux)
}

func (i *inner) nodeAction(request *http.Request) error {
	machine, err := i.machines.find(request.PathValue("name"))
	if err != nil {
		return err
	}
	switch action := request.PathValue("action"); action {
	case "start":
		return i.machines.start(i.context, machine)
	case "stop":
		return machine.stop()
	case "kill":
		return machine.kill()
	case "restart-kubelet":
		return machine.signalAgent(node.RestartKubelet)
	case "stop-kubelet":
		return machine.signalAgent(node.StopKubelet)
	case "start-kubelet":
		return machine.signalAgent(node.StartKubelet)
	case "remove":
		return i.machines.remove(request.Context(), machine)
	default:
		return fmt.Errorf("cannot %q a node", action)
	}
}

// handler answers with the outcome of a command.
func handler(command func(*http.Request) error) http.HandlerFunc {
	return func(answer http.ResponseWriter, request *http.Request) {
		err := command(request)
		switch {
		case err == nil:
			answer.WriteHeader(http.StatusNoContent)
		case errors.Is(err, errUnknownNode):
			http.Error(answer, err.Error(), http.StatusNotFound)
		default:
			http.Error(answer, err.Error(), http.StatusConflict)
		}
	}
}

func (i *inner) status(request *http.Request) Status {
	status := Status{Missing: i.missing(request.Context()), Components: i.components.pids(), Nodes: []NodeStatus{}}
	for _, machine := range i.machines.list() {
		status.Nodes = append(status.Nodes, machine.status())
	}
	return status
}

func (c *components) pids() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	pids := map[string]int{}
	for name, command := range c.running {
		pids[name] = command.Process.Pid
	}
	return pids
}

func (m *machine) status() NodeStatus {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	status := NodeStatus{Node: m.Node, Address: m.address(), Failure: m.failure}
	if m.process != nil {
		status.PID = m.process.Process.Pid
	}
	return status
}
