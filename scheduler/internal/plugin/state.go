package plugin

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/sharenode"
)

const stateKey fwk.StateKey = Name

// podState is what is known of the pod of a scheduling cycle. A pod without one asks for nothing of ours.
type podState struct {
	asked *cluster.Asked
	// attempt is the number of the attempt.
	attempt uint64
	// holding is that of the Lease in which the pod is placed.
	holding uint64
	// isUnservable says that the pod itself is the reason: no node takes it.
	isUnservable bool
	// isHolder says that the pod has units already: it must not get others.
	isHolder bool
	// trials are, by node, what the scheduler tries: this pod beside others, or in their place.
	trials map[string]*trial
	// plans are those of the whole cycle, whichever copy of the state is looked at.
	plans *plans
	// places are what of the plans is remembered: the cards that they free for the pod, by node.
	places *sync.Map
	// refused are why nodes do not fit.
	refused *refusals
	// scores are by node.
	scores map[string]int64
	// reserved is what the pod gets; nil until then.
	reserved *reservation
}

// refusals are why nodes do not fit the pod, by node.
type refusals struct {
	mutex  sync.Mutex
	byNode map[string]*ledger.Refusal
}

func (r *refusals) note(node string, refusal *ledger.Refusal) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.byNode[node] = refusal
}

// nodes returns the nodes that do not fit.
func (r *refusals) nodes() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Collect(maps.Keys(r.byNode))
}

// isResolvable says whether we refused a node that the pod would fit if others went.
func (r *refusals) isResolvable(node string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	refusal := r.byNode[node]
	return refusal != nil && refusal.IsResolvable
}

// kinds returns for which kinds of reasons nodes do not fit, each once.
func (r *refusals) kinds() []ledger.Kind {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	found := map[ledger.Kind]bool{}
	for _, refusal := range r.byNode {
		found[refusal.Kind] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// sentences returns for people why each node does not fit a request.
func (r *refusals) sentences(request cards.Request) map[string]string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	names := slices.Sorted(maps.Keys(r.byNode))
	of := make([]*ledger.Refusal, len(names))
	for place, name := range names {
		of[place] = r.byNode[name]
	}
	byNode := make(map[string]string, len(names))
	for place, sentence := range ledger.Sentences(of, request) {
		byNode[names[place]] = sentence
	}
	return byNode
}

// reservation is what a pod gets of a node, and the GPUShareNode by which that was chosen.
type reservation struct {
	holder  *ledger.Holder
	choices []ledger.Choice
	share   *sharenode.Node
}

// trial is a node as it would be with other pods.
type trial struct {
	// info is the node as the scheduler sees it, with those that are removed.
	info fwk.NodeInfo
	// node has the pods that are removed, and those that are nominated for it.
	node *ledger.Node
	// gone are the UIDs of the pods that are gone, and still count: until the kubelet has released what they had, not for longer
	// than a minute.
	gone []string
	// removed are the pods with units that would be gone, by UID.
	removed map[string]*v1.Pod
	// isOfEvictions says that the scheduler tries evictions, be it that all pods are back again. Gone pods count as released then.
	isOfEvictions bool
	// isShared says whether pods are nominated for it: which cards they get depends on who is removed.
	isShared bool
}

// without returns the node as it would be without those that are removed or gone.
func (t *trial) without() *ledger.Node {
	node := t.node.Clone()
	node.TakeAway(slices.AppendSeq(slices.Clone(t.gone), maps.Keys(t.removed))...)
	return node
}

// plans are which pods have to go on each node, decided once in a cycle.
type plans struct {
	mutex sync.Mutex
	// victims are UIDs; nil where nothing helps.
	victims map[string]*plan
}

type plan struct {
	victims []string
	// place are the cards that the pod gets then, beside those that are nominated for the node.
	place []cards.Share
	// isPossible is false where nothing helps.
	isPossible bool
	// among are the UIDs of the pods among which they were looked for.
	among map[string]*v1.Pod
}

// stateOf returns nil for a pod that asks for nothing of ours.
func stateOf(state fwk.CycleState) *podState {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	own, _ := data.(*podState)
	return own
}

// Clone implements fwk.StateData: what is tried in the copy does not change the original.
func (s *podState) Clone() fwk.StateData {
	copied := *s
	copied.trials = make(map[string]*trial, len(s.trials))
	for name, one := range s.trials {
		tried := *one
		tried.node, tried.removed = one.node.Clone(), maps.Clone(one.removed)
		copied.trials[name] = &tried
	}
	return &copied
}

// planFor returns which pods have to go from a node so that the pod fits, and decides that when the scheduler has just
// removed all that may go.
func (p *plans) planFor(node string, trial *trial, decide func() *plan) *plan {
	p.mutex.Lock()
	known := p.victims[node]
	p.mutex.Unlock()
	if known != nil && isAmong(trial.removed, known.among) {
		return known
	}
	made := decide() // of other nodes at the same time
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.victims[node] = made
	return made
}

func isAmong(pods, others map[string]*v1.Pod) bool {
	for uid := range pods {
		if others[uid] == nil {
			return false
		}
	}
	return true
}

// isDone says whether all that have to go are removed: the pod fits then, whoever else is, on a node that is not shared.
func (p *plan) isDone(trial *trial) bool {
	for _, uid := range p.victims {
		if trial.removed[uid] == nil {
			return false
		}
	}
	return true
}

// places are, by the UIDs of pods that wait, what their last attempt to evict others frees for them.
type places struct {
	sync.Map
	// last is the pod whose attempt to evict others was the last one; nil once only the node is remembered that is kept for it.
	last atomic.Pointer[types.UID]
}

// begin says that an attempt of a pod to evict others begins, and where it will say what that frees.
func (p *places) begin(uid types.UID, byNode *sync.Map) {
	p.Store(uid, byNode)
	p.last.Store(&uid)
}

// ended forgets what the last attempt would have freed on other nodes than the one for which its pod is nominated now: those may be
// thousands.
func (p *places) ended(isNominated func(uid types.UID, node string) bool) {
	uid := p.last.Swap(nil)
	if uid == nil {
		return
	}
	all, isKnown := p.Load(*uid)
	if !isKnown {
		return
	}
	kept := &sync.Map{}
	all.(*sync.Map).Range(func(node, shares any) bool {
		if isNominated(*uid, node.(string)) {
			kept.Store(node, shares)
		}
		return true
	})
	p.CompareAndSwap(*uid, all, kept) // unless it is gone
}

// of returns the cards of a node that are freed for a pod; none where nothing is remembered.
func (p *places) of(uid types.UID, node string) []cards.Share {
	if byNode, is := p.Load(uid); is {
		if shares, is := byNode.(*sync.Map).Load(node); is {
			return shares.([]cards.Share)
		}
	}
	return nil
}
