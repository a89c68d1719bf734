package cases

import (
	"encoding/json"
	"time"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/sharenode"
)

// world is a ledger, and what the scheduler shows of nodes: the pods that are bound there.
type world struct {
	book *ledger.Ledger
	pods map[string]*ledger.Pod
}

func newWorld() *world {
	return &world{ledger.New(), map[string]*ledger.Pod{}}
}

// node returns the sums of a node as a scheduler makes them.
func (w *world) node(name string) *ledger.Node {
	var pods []*ledger.Pod
	for _, pod := range w.pods {
		if pod.Node == name {
			pods = append(pods, pod)
		}
	}
	return w.book.Node(name, pods)
}

// setShare returns the name of the GPUShareNode in raw; false where it has none.
func (w *world) setShare(raw json.RawMessage) (string, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	share, err := sharenode.Read(raw)
	if err != nil {
		return "", false
	}
	w.book.SetShareNode(share)
	return share.Name, true
}

func (w *world) setPod(given askedPod) {
	pod := podOf(given)
	w.pods[pod.UID] = pod
	w.book.SetPod(pod)
}

// step is one thing that happens.
type step struct {
	Share   json.RawMessage `json:"share"`
	Drop    string          `json:"drop"`
	Pod     *askedPod       `json:"pod"`
	Gone    string          `json:"gone"`
	Expire  bool            `json:"expire"`
	Reserve *askedPod       `json:"reserve"`
	Release string          `json:"release"`
	// At is when it happens, in milliseconds.
	At int64 `json:"at"`
}

type historyQuestion struct {
	Nodes []string `json:"nodes"`
	Steps []step   `json:"steps"`
}

// answerHistory is asked what is free after each step.
func answerHistory(given historyQuestion) any {
	world, answers := newWorld(), []any{}
	for _, step := range given.Steps {
		did := world.take(step)
		nodes := object{}
		for _, name := range given.Nodes {
			nodes[name] = object{
				"free":       describe(world.node(name), world.book.ShareNode(name)),
				"unreleased": list(world.book.Unreleased(name)),
			}
		}
		answers = append(answers, object{"did": did, "nodes": nodes})
	}
	return answers
}

// take has a step happen, and returns what came of it.
func (w *world) take(step step) any {
	now := time.UnixMilli(step.At)
	switch {
	case step.Share != nil:
		w.setShare(step.Share)
	case step.Drop != "":
		w.book.DropShareNode(step.Drop)
	case step.Pod != nil:
		w.setPod(*step.Pod)
	case step.Gone != "":
		delete(w.pods, step.Gone)
		w.book.PodGone(step.Gone, now)
	case step.Expire:
		w.book.Expire(now)
	case step.Reserve != nil:
		return w.reserve(*step.Reserve)
	case step.Release != "":
		w.book.Release(step.Release)
		if pod := w.pods[step.Release]; pod != nil && !pod.IsAnnotated() {
			delete(w.pods, step.Release)
		}
	}
	return nil
}

// reserve reserves what a pod gets, and has the scheduler show it on the node, as one that it assumes there.
func (w *world) reserve(ask askedPod) any {
	request := cards.ReadRequest(ask.Spec.pod(), w.book.Resources())
	holder, choices := w.node(ask.Node).Reserve(ask.UID, request)
	if holder == nil || w.book.Reserve(holder) != nil {
		return nil
	}
	w.pods[ask.UID] = podOf(askedPod{UID: ask.UID, Node: ask.Node})
	return chosenOf(choices)
}
