package cluster

import (
	"strconv"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/podapi"
)

// Asked is what a pod asks for, read once. It never changes.
type Asked struct {
	cards.Request
	// key is the same for all that get the same answer from every node.
	key string
}

// Ask returns what a pod asks of resources.
func Ask(pod *v1.Pod, resources []cards.Resource) *Asked {
	asked := &Asked{Request: podapi.Request(pod, resources)}
	var key strings.Builder
	for _, part := range asked.Parts {
		key.WriteString(part.Name)
		key.WriteByte('=')
		key.WriteString(strconv.FormatInt(part.Total, 10))
		key.WriteByte(' ')
	}
	asked.key = key.String()
	return asked
}

// Key is the same for all that get the same answer from every node: fit, or the refusal without the names of containers.
func (a *Asked) Key() string { return a.key }

// Room is what a node offers, at one moment. It answers every request once, and remembers.
type Room struct {
	mutex   sync.Mutex
	node    *ledger.Node
	answers []answer
}

type answer struct {
	// key is that of the request.
	key     string
	ranked  cards.Ranked
	refusal *ledger.Refusal
}

// maxAnswers is how many requests a node answers before it forgets: pods of one burst ask for the same.
const maxAnswers = 64

// nowhere is the room of a node of which nothing is known.
var nowhere = &Room{node: ledger.NewNode(nil, nil)}

// Fit says how good the node is for a request, or why the request does not fit.
func (r *Room) Fit(asked *Asked) (cards.Ranked, *ledger.Refusal) {
	if r == nowhere {
		return r.node.Fit(asked.Request)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for place := range r.answers {
		if found := &r.answers[place]; found.key == asked.key {
			return found.ranked, found.refusal
		}
	}
	ranked, refusal := r.node.Fit(asked.Request)
	if len(r.answers) >= maxAnswers {
		r.answers = nil
	}
	r.answers = append(r.answers, answer{asked.key, ranked, refusal})
	return ranked, refusal
}

// Fits says whether a request fits the node.
func (r *Room) Fits(asked *Asked) bool {
	_, refusal := r.Fit(asked)
	return refusal == nil
}

// Preempts says whether the node takes pods, and its policy allows that others are evicted to free a card.
func (r *Room) Preempts() bool { return r.node.Preempts() }

// Node returns a copy of the node's sums, which is the caller's.
func (r *Room) Node() *ledger.Node {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.node.Clone()
}
