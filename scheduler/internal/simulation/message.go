package simulation

import (
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"gpushare.io/scheduler/internal/sharenode"
)

// Message is one thing that happens to an engine, or that it is asked.
type Message struct {
	// Engine is the name of the engine.
	Engine string `json:"engine"`
	// Milliseconds since 1970 are the time at which it happens.
	Milliseconds int64  `json:"at"`
	Do           string `json:"do"`
	// Pod, ShareNode, Name and UID are what is done to.
	Pod       *v1.Pod         `json:"pod"`
	ShareNode json.RawMessage `json:"shareNode"`
	Name      string          `json:"name"`
	UID       types.UID       `json:"uid"`
	// Unseen are pods that were asked after, Present are those that the API server has.
	Unseen  []types.UID        `json:"unseen"`
	Present map[types.UID]bool `json:"present"`
}

// Engines are by name.
type Engines map[string]*Engine

// Take has a message happen, and returns the answer. It returns an error for what is no message.
func (e Engines) Take(message Message) (any, error) {
	if message.Do == "start" || e[message.Engine] == nil {
		e[message.Engine] = New()
	}
	return e[message.Engine].take(message)
}

func (e *Engine) take(message Message) (any, error) {
	e.now = time.UnixMilli(message.Milliseconds)
	switch message.Do {
	case "start":
	case "share":
		share, err := sharenode.Read(message.ShareNode)
		if err != nil {
			return nil, err
		}
		e.cluster.SetShareNode(share)
	case "drop":
		e.cluster.DropShareNode(message.Name)
	case "pod":
		e.SetPod(message.Pod)
	case "gone":
		e.PodGone(message.UID)
	case "see":
		e.See(message.Pod)
	case "unsee":
		e.Unsee(message.UID)
	case "adopt":
		e.cluster.Adopt(message.Pod.UID, message.Pod.Annotations)
	case "unseen":
		return map[string]any{"uids": e.cluster.Unseen()}, nil
	case "confirm":
		e.cluster.Confirm(message.Unseen, message.Present)
	case "expire":
		e.cluster.Expire()
	case "release":
		e.Release(message.UID)
	case "place":
		return e.Place(message.Pod)
	case "inspect":
		return map[string]any{"nodes": e.Inspect()}, nil
	default:
		return nil, fmt.Errorf("nothing to do: %q", message.Do)
	}
	return struct{}{}, nil
}
