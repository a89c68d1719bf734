// Package plugin is the plugin GPUShare of the scheduling framework: a pod that asks for units of cards gets a node
// where they fit one card, and node and card in one Binding.
//
// Pods that ask for nothing of ours cost one look at their limits.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/bindcall"
	"gpushare.io/scheduler/internal/binding"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/podapi"
)

// Name is the plugin's name in the configuration of kube-scheduler.
const Name = "GPUShare"

// Plugin is the plugin of one profile.
type Plugin struct {
	*core
	handle fwk.Handle
}

var (
	_ fwk.PreFilterPlugin     = &Plugin{}
	_ fwk.PreFilterExtensions = &Plugin{}
	_ fwk.FilterPlugin        = &Plugin{}
	_ fwk.PostFilterPlugin    = &Plugin{}
	_ fwk.PreScorePlugin      = &Plugin{}
	_ fwk.ScorePlugin         = &Plugin{}
	_ fwk.ReservePlugin       = &Plugin{}
	_ fwk.BindPlugin          = &Plugin{}
	_ fwk.EnqueueExtensions   = &Plugin{}
	_ fwk.SignPlugin          = &Plugin{}
)

// Name implements fwk.Plugin.
func (p *Plugin) Name() string { return Name }

// PreFilter decides once what the pod asks for.
func (p *Plugin) PreFilter(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo,
) (*fwk.PreFilterResult, *fwk.Status) {
	if !podapi.AsksForAny(pod, named) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if err := p.ready(); err != nil {
		p.soon.add(pod)
		return nil, p.postpone(state, pod, named, err)
	}
	resources := p.cluster.Resources()
	asked := cluster.Ask(pod, resources)
	// A bound pod has its units. With InPlacePodVerticalScalingSchedulerPreemption it is tried for more CPU or memory.
	if pod.Spec.NodeName != "" || len(asked.Parts) == 0 {
		p.waitsNoMore(pod.UID) // its resource may have been ours when it was refused
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if refusal := unservable(pod, asked); refusal != nil {
		p.metrics.Refused(pod.UID, []ledger.Kind{refusal.Kind})
		own := p.attempt(pod, asked, 0)
		own.isUnservable = true
		state.Write(stateKey, own)
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, refusal.Message)
	}
	holding, err := p.hold(ctx)
	if err != nil {
		p.postponed.add(pod)
		return nil, p.postpone(state, pod, resources, err)
	}
	state.Write(stateKey, p.attempt(pod, asked, holding))
	return nil, nil
}

// postpone ends an attempt of a pod that may not be placed now, and returns why it may not. After an error the scheduler keeps no
// node for the pod any more, and would evict others for it elsewhere. So a nominated pod is refused: PostFilter keeps its node.
func (p *Plugin) postpone(state fwk.CycleState, pod *v1.Pod, resources []cards.Resource, why error) *fwk.Status {
	if (schedulersView{p.core}).NominatedNode(pod) == "" {
		p.forgetUnlessPending(pod)
		return fwk.AsStatus(why)
	}
	state.Write(stateKey, p.attempt(pod, cluster.Ask(pod, resources), 0))
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why.Error())
}

// attempt begins an attempt of a pod, and returns what is known of it.
func (p *Plugin) attempt(pod *v1.Pod, asked *cluster.Asked, holding uint64) *podState {
	number := p.cluster.Attempt()
	p.places.ended(p.isNominated)
	p.waiting.Add(pod, asked, number)
	p.forgetUnlessPending(pod)
	return &podState{
		asked:    asked,
		holding:  holding,
		attempt:  number,
		isHolder: p.cluster.Holder(pod.UID) != nil,
		plans:    &plans{victims: map[string]*plan{}},
		places:   &sync.Map{},
		refused:  &refusals{byNode: map[string]*ledger.Refusal{}},
	}
}

// unservable returns why a pod fits no node, whatever is free; nil where it may fit one.
func unservable(pod *v1.Pod, asked *cluster.Asked) *ledger.Refusal {
	if reason := asked.Crowded(); reason != "" {
		return &ledger.Refusal{Message: reason, Kind: ledger.CrowdedContainer}
	}
	if reason := asked.TooManyUnits(); reason != "" {
		return &ledger.Refusal{Message: reason, Kind: ledger.TooManyUnits}
	}
	if reason := lackOfRoom(pod, asked); reason != "" {
		return &ledger.Refusal{Message: reason, Kind: ledger.AnnotationsFull}
	}
	return nil
}

func lackOfRoom(pod *v1.Pod, asked *cluster.Asked) string {
	return allocation.LackOfRoom(allocation.SizeBesideOurs(pod.Annotations), allocation.WorstSize(asked.Request))
}

// PreFilterExtensions implements fwk.PreFilterPlugin.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// Filter says whether the pod fits a node, and in the words of the extender why not.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	own := stateOf(state)
	if own == nil {
		return nil
	}
	name := info.Node().Name
	if own.isHolder {
		if refusal := p.cluster.HeldElsewhere(pod.UID, name); refusal != nil {
			own.refused.note(name, refusal)
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, refusal.Words(own.asked.Request))
		}
	}
	if reason := p.pauses.Reason(name); reason != "" {
		own.refused.note(name, &ledger.Refusal{Message: reason, Kind: ledger.NodeClosed})
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
	}
	if trial := own.trials[name]; trial != nil {
		return p.filterTrial(own, name, trial)
	}
	room := p.cluster.Room(info)
	_, refusal := room.Fit(own.asked)
	if refusal != nil {
		own.refused.note(name, refusal)
	}
	return statusOf(refusal, own.asked.Request, room.Preempts())
}

// statusOf returns nil where there is no refusal.
func statusOf(refusal *ledger.Refusal, request cards.Request, preempts bool) *fwk.Status {
	if refusal == nil {
		return nil
	}
	code := fwk.UnschedulableAndUnresolvable
	if refusal.IsResolvable && preempts {
		code = fwk.Unschedulable
	}
	return fwk.NewStatus(code, refusal.Words(request))
}

// PreScore ranks the nodes that fit.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, _ *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	own := stateOf(state)
	if own == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	ranked := make([]cards.Ranked, 0, len(nodes))
	for _, info := range nodes {
		if one, refusal := p.cluster.Room(info).Fit(own.asked); refusal == nil {
			ranked = append(ranked, one)
		}
	}
	own.scores = cards.Scores(ranked)
	return nil
}

// Score implements fwk.ScorePlugin: 100 for the best node.
func (p *Plugin) Score(
	_ context.Context, state fwk.CycleState, _ *v1.Pod, info fwk.NodeInfo,
) (int64, *fwk.Status) {
	own := stateOf(state)
	if own == nil {
		return 0, nil
	}
	//lint:ignore SA1019 its successor MaxScore is not in Kubernetes 1.35
	return own.scores[info.Node().Name] * fwk.MaxNodeScore / cards.Best, nil
}

// ScoreExtensions implements fwk.ScorePlugin.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

// Reserve chooses the cards. From now on they are the pod's.
func (p *Plugin) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	own := stateOf(state)
	if own == nil {
		return nil
	}
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("reserving units: %w", err))
	}
	node := p.besideNominated(info, pod)
	holder, choices := node.Reserve(string(pod.UID), own.asked.Request)
	if holder == nil {
		// An error, so that the pod is tried again: no other node has refused it, and none would wake it.
		_, refusal := node.Fit(own.asked.Request)
		return fwk.AsStatus(fmt.Errorf("node %s has changed since it was chosen: %s", nodeName,
			refusal.Words(own.asked.Request)))
	}
	if err := p.cluster.Reserve(holder); err != nil {
		return fwk.AsStatus(err)
	}
	own.reserved = &reservation{holder, choices, node.ShareNode()}
	p.waiting.Remove(pod.UID)
	p.waiting.Taken(nodeName, podapi.Priority(pod))
	p.metrics.Fits(pod.UID)
	if nominated := pod.Status.NominatedNodeName; nominated != "" && nominated != nodeName {
		p.anew(nominated)
	}
	p.wakeNominated(ctx, pod, nodeName)
	return nil
}

// wakeNominated has the pods tried again that are nominated for a node and less important than pod, which has got units
// there: they may wait for the same units, and others may be evicted for them elsewhere.
func (p *Plugin) wakeNominated(ctx context.Context, pod *v1.Pod, node string) {
	var less []*v1.Pod
	for _, one := range p.handle.NominatedPodsForNode(node) {
		if other := one.GetPod(); podapi.Priority(other) < podapi.Priority(pod) {
			less = append(less, other)
		}
	}
	if len(less) > 0 {
		p.activate(ctx, less)
	}
}

// Unreserve gives back what Reserve took. Without effect on what a watch has shown.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	if own := stateOf(state); own != nil && own.reserved != nil {
		own.reserved = nil
		p.cluster.Release(pod.UID)
	}
}

// Bind writes node and cards in one Binding. It leaves pods that ask for nothing of ours to others.
func (p *Plugin) Bind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	own := stateOf(state)
	if own == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	if own.reserved == nil {
		return fwk.AsStatus(errors.New("no units are reserved for the pod"))
	}
	reserved, now := own.reserved, p.clock.Now()
	given := binding.AllocationOf(reserved.holder, own.asked.Request, reserved.share, now)
	err := p.write(ctx, own, pod, nodeName, binding.Of(given, reserved.share, now))
	logger := klog.FromContext(ctx)
	if err != nil {
		logger.Info("A pod was not bound", "pod", klog.KObj(pod), "node", nodeName,
			"cards", cardsOf(reserved.holder), "err", err)
		return fwk.AsStatus(err)
	}
	p.pauses.Bound(pod, nodeName)
	if p.cluster.Holder(pod.UID) == nil { // the watch has shown its end already
		p.metrics.Shown(pod.UID)
		p.pauses.Gone(pod.UID, p.cluster.IsReported(nodeName, pod.UID))
	}
	logger.V(2).Info("Bound with units of cards", "pod", klog.KObj(pod), "node", nodeName,
		"cards", cardsOf(reserved.holder), "reason", reasonsOf(reserved.choices))
	return nil
}

// write writes a Binding while the Lease is held that was held when the cards were chosen. Where it stays unknown what
// became of it, its units stay reserved and the Lease is not given back.
func (p *Plugin) write(
	ctx context.Context, own *podState, pod *v1.Pod, node string, written binding.Binding,
) error {
	ended := p.metrics.Bind(pod.UID)
	use, err := p.lease.Begin(own.holding)
	if err != nil {
		ended(err)
		return err
	}
	writer := bindcall.Writer{API: p.api.bindings, Clock: p.clock, Slots: p.slots, Permit: use.Permit}
	err = writer.Write(ctx, pod, node, written)
	if errors.Is(err, bindcall.ErrUnknown) {
		own.reserved = nil
		return err
	}
	use.End()
	ended(err)
	if errors.Is(err, bindcall.ErrBoundBefore) {
		p.cluster.PodGone(pod.UID)
	}
	return err
}

func cardsOf(holder *ledger.Holder) string {
	names := make([]string, len(holder.Cards))
	for place, own := range holder.Cards {
		names[place] = own.Card
	}
	return strings.Join(names, ", ")
}

func reasonsOf(choices []ledger.Choice) string {
	reasons := make([]string, len(choices))
	for place, choice := range choices {
		reasons[place] = choice.Reason
	}
	return strings.Join(reasons, "; ")
}

// SignPod says that pods which ask for nothing of ours are alike to us. Of others each takes what the next one would
// have got.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if podapi.AsksForAny(pod, p.cluster.Resources()) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the pod asks for units of cards")
	}
	return nil, nil
}
