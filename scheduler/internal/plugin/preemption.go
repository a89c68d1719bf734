package plugin

import (
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/podapi"
	"gpushare.io/scheduler/internal/victims"
)

// The scheduler's own preemption removes from a node all pods that may go, asks whether the pod fits, and gives back
// one pod after the other, the most important first, while the pod still fits. With that alone it would leave over
// whoever happens to lie on one card, be it many instead of one. So the first question decides which pods have to go,
// the fewest and least important on one card, and the pod fits while those are gone.

// PostFilter keeps the scheduler from evicting pods where that is of no use: for a pod that no node takes, and for one
// that waits on its node until the kubelet has released what evicted pods had. Those are gone from the API by then,
// and the scheduler would look for others. Nobody is evicted either while another scheduler may be placing pods.
func (p *Plugin) PostFilter(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	own := stateOf(state)
	if own == nil {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	defer p.forgetUnlessPending(pod)
	p.refused(own, pod, nodes)
	if own.isUnservable { // no node is kept for it any more
		return keptNowhere(), fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	if !p.isStillHeld(ctx, own, pod) { // nobody is evicted, and a nominated pod keeps its node
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	own.reword(nodes)
	p.metrics.Refused(pod.UID, own.refused.kinds())
	return p.keep(ctx, state, pod, nodes)
}

// isStillHeld says whether the Lease has been held since the attempt began. If it has not, another scheduler may have placed pods
// since, and the pod is tried again. Before all is read, nobody asks for the Lease: others can place pods meanwhile.
func (p *Plugin) isStillHeld(ctx context.Context, own *podState, pod *v1.Pod) bool {
	if !p.hasBegun.Load() {
		return false
	}
	p.postponed.add(pod) // first: the Lease may be taken right after Hold has refused the pod
	holding, err := p.hold(ctx)
	if err != nil {
		return false
	}
	p.postponed.remove(pod.UID)
	if holding != own.holding {
		p.soon.add(pod)
	}
	return holding == own.holding
}

// keep decides which node is kept for a pod, and where the scheduler tries evictions for it.
func (p *Plugin) keep(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	own := stateOf(state)
	nominated := p.nominatedNode(own, pod)
	isRefusedThere := nominated != "" && nodes.Get(nominated).Plugin() == Name
	if isRefusedThere && p.isBeingReleased(ctx, state, pod, nominated) {
		return waitsFor(nominated)
	}
	if nominated != "" {
		own.places.Store(nominated, p.places.of(pod.UID, nominated)) // until evictions are tried there again
	}
	p.places.begin(pod.UID, own.places)
	if releasing := p.narrow(ctx, state, own, pod, nodes); releasing != "" {
		return waitsFor(releasing)
	}
	// Unless others can be evicted now: the scheduler evicts nobody while pods are ending there, be it in vain.
	if isRefusedThere && podapi.Preempts(pod) {
		return keptNowhere(), fwk.NewStatus(fwk.Unschedulable)
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// keptNowhere has no node kept for a pod.
func keptNowhere() *fwk.PostFilterResult {
	return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride}}
}

// waitsFor has a pod wait for a node; nobody is evicted.
func waitsFor(node string) (*fwk.PostFilterResult, *fwk.Status) {
	kept := &fwk.NominatingInfo{NominatedNodeName: node, NominatingMode: fwk.ModeOverride}
	return &fwk.PostFilterResult{NominatingInfo: kept}, fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		"the pod waits until its node has released the units of pods that are gone")
}

// refused has the pod wait for the nodes where we have refused it, and for nodes that come later. A pod that other plugins alone
// have refused waits for no node: those plugins wake it.
func (p *Plugin) refused(own *podState, pod *v1.Pod, nodes fwk.NodeToStatusReader) {
	refused := own.refused.nodes()
	by := cluster.NamedNodes(refused)
	if len(refused) > 0 && p.sawAll(nodes) {
		by = p.cluster.NodeSet(own.attempt, refused)
	}
	for _, node := range p.waiting.Refused(pod.UID, by, p.cluster) {
		p.note(node)
	}
	if seen, is := nodes.(statuses); is && seen.Len() == len(refused) && p.sawAll(nodes) {
		p.waiting.ForCardsAlone(pod.UID)
	}
}

// sawAll says whether every node was looked at: not for a pod that names its node, or that waits for a volume.
func (p *Plugin) sawAll(nodes fwk.NodeToStatusReader) bool {
	seen, is := nodes.(statuses)
	all, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	return !is || err != nil || seen.Len() >= len(all)
}

// nominatedNode returns for which node the pod is nominated, empty where for none. The scheduler may know that before
// the pod says it: the next attempt comes as soon as the evicted pods are gone.
func (p *Plugin) nominatedNode(own *podState, pod *v1.Pod) string {
	if pod.Status.NominatedNodeName != "" {
		return pod.Status.NominatedNodeName
	}
	for _, node := range own.refused.nodes() {
		if p.isNominated(pod.UID, node) {
			return node
		}
	}
	return ""
}

// isNominated says whether the scheduler keeps a node for a pod.
func (p *Plugin) isNominated(uid types.UID, node string) bool {
	return slices.ContainsFunc(p.handle.NominatedPodsForNode(node), func(one fwk.PodInfo) bool { return one.GetPod().UID == uid })
}

// statuses are why nodes do not fit, for the scheduler's message about the pod.
type statuses interface {
	fwk.NodeToStatusReader
	Set(node string, status *fwk.Status)
	// Len returns how many nodes have one.
	Len() int
}

// reword gives nodes the same words that differ in amounts alone, as the extender does: the scheduler counts nodes by
// their words.
func (s *podState) reword(nodes fwk.NodeToStatusReader) {
	writable, is := nodes.(statuses)
	if !is {
		return
	}
	for node, words := range s.refused.sentences(s.asked.Request) {
		before := writable.Get(node)
		if before.Plugin() == Name && before.Message() != words {
			writable.Set(node, fwk.NewStatus(before.Code(), words).WithPlugin(Name))
		}
	}
}

// narrow keeps the scheduler from trying evictions on nodes where another plugin refuses the pod whoever goes, such as those
// that its node selector does not name. Nobody else was asked about the nodes that we refused, for we come first. It returns a node
// where nobody has to go beside those that are gone; empty where there is none.
func (p *Plugin) narrow(
	ctx context.Context, state fwk.CycleState, own *podState, pod *v1.Pod, nodes fwk.NodeToStatusReader,
) (releasing string) {
	writable, is := nodes.(statuses)
	tried := p.triedFor(own, pod, nodes)
	if !is || len(tried) == 0 {
		return ""
	}
	isInVain, fitsSoon := p.prospects(ctx, state, own, pod, tried)
	for place, info := range tried {
		if name := info.Node().Name; isInVain[place] {
			words := nodes.Get(name).Message()
			writable.Set(name, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, words).WithPlugin(Name))
		}
	}
	if place := slices.Index(fitsSoon, true); place >= 0 {
		return tried[place].Node().Name
	}
	return ""
}

// prospects says of each node that is tried whether evictions there are in vain, and whether the pod will fit it without.
func (p *Plugin) prospects(
	ctx context.Context, state fwk.CycleState, own *podState, pod *v1.Pod, tried []fwk.NodeInfo,
) (isInVain, fitsSoon []bool) {
	others := withoutUs(state)
	isInVain, fitsSoon = make([]bool, len(tried)), make([]bool, len(tried))
	p.handle.Parallelizer().Until(ctx, len(tried), func(place int) {
		status := p.handle.RunFilterPlugins(ctx, others, pod, tried[place])
		fitsSoon[place] = status.IsSuccess() && p.fitsOnceReleased(own, pod, tried[place])
		isInVain[place] = status.Code() == fwk.UnschedulableAndUnresolvable
	}, Name)
	return isInVain, fitsSoon
}

// fitsOnceReleased says whether a pod will fit a node once all is released of the pods that are gone, and remembers where: on other
// cards it would count where others end much later.
func (p *Plugin) fitsOnceReleased(own *podState, pod *v1.Pod, info fwk.NodeInfo) bool {
	gone := p.cluster.Gone(info)
	if len(gone) == 0 {
		return false
	}
	node := p.besideNominated(info, pod)
	node.TakeAway(gone...)
	holder, _ := node.Reserve("", own.asked.Request)
	if holder != nil {
		own.places.Store(info.Node().Name, holder.Cards)
	}
	return holder != nil
}

// withoutUs returns a state in which the other plugins are asked about nodes that we refused.
func withoutUs(state fwk.CycleState) fwk.CycleState {
	others := state.Clone()
	others.SetSkipFilterPlugins(others.GetSkipFilterPlugins().Union(notAsked))
	return others
}

// notAsked are the plugins that withoutUs leaves out. Once the Filter of DynamicResources has refused a node because of a claim
// of the pod, its PostFilter deallocates the claim, although its device may be on the very node where evictions help.
var notAsked = sets.New(Name, names.DynamicResources)

// triedFor returns those of the nodes that we refused where less important pods could be evicted for pod, and those where pods are
// gone, also if nobody may be evicted there; none where nobody could be evicted, also on nodes that another plugin refused.
func (p *Plugin) triedFor(own *podState, pod *v1.Pod, nodes fwk.NodeToStatusReader) []fwk.NodeInfo {
	mayEvict := func(info fwk.NodeInfo) bool {
		return nodes.Get(info.Node().Name).Code() == fwk.Unschedulable && hasLessImportant(info, pod)
	}
	all, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil || !podapi.Preempts(pod) || !slices.ContainsFunc(all, mayEvict) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(info fwk.NodeInfo) bool { // the other list is the snapshot's
		name := info.Node().Name
		return !own.refused.isResolvable(name) || !mayEvict(info) && !p.cluster.IsReleasing(name)
	})
}

func hasLessImportant(info fwk.NodeInfo, pod *v1.Pod) bool {
	return slices.ContainsFunc(info.GetPods(), func(other fwk.PodInfo) bool {
		return podapi.Priority(other.GetPod()) < podapi.Priority(pod)
	})
}

// isBeingReleased says whether a pod will fit a node although nobody else is evicted, once those are gone that could have been
// evicted for it: of others that are ending nobody knows how long they take. Once nothing more is released there, it does not fit
// where others that are nominated for the node leave no room: two of them would keep each other away for ever. Nor does it where
// another plugin refuses it whoever goes, such as since the node is unreachable: pods there do not end.
func (p *Plugin) isBeingReleased(ctx context.Context, state fwk.CycleState, pod *v1.Pod, name string) bool {
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil || p.handle.RunFilterPlugins(ctx, withoutUs(state), pod, info).Code() == fwk.UnschedulableAndUnresolvable {
		return false
	}
	asked, leaving := stateOf(state).asked, p.cluster.Leaving(info, podapi.Priority(pod))
	if len(leaving) == 0 {
		return p.besideNominated(info, pod).Fits(asked.Request)
	}
	node := p.cluster.Room(info).Node()
	node.TakeAway(leaving...)
	return node.Fits(asked.Request)
}

// RemovePod implements fwk.PreFilterExtensions.
func (p *Plugin) RemovePod(
	_ context.Context, state fwk.CycleState, _ *v1.Pod, removed fwk.PodInfo, info fwk.NodeInfo,
) *fwk.Status {
	own := stateOf(state)
	if own == nil {
		return nil
	}
	trial, pod := p.trialOf(own, info), removed.GetPod()
	if uid := string(pod.UID); trial.node.HasUnits(uid) {
		trial.removed[uid], trial.isOfEvictions = pod, true
	}
	return nil
}

// AddPod implements fwk.PreFilterExtensions: for a pod that RemovePod has removed, and for one that is nominated for
// the node.
func (p *Plugin) AddPod(
	_ context.Context, state fwk.CycleState, _ *v1.Pod, added fwk.PodInfo, info fwk.NodeInfo,
) *fwk.Status {
	own := stateOf(state)
	if own == nil {
		return nil
	}
	trial, pod := p.trialOf(own, info), added.GetPod()
	uid := string(pod.UID)
	switch {
	case trial.removed[uid] != nil:
		delete(trial.removed, uid)
	case pod.Spec.NodeName == "" && !trial.node.HasUnits(uid):
		p.nominate(trial, pod)
	}
	return nil
}

// trialOf returns what is tried of a node. It begins with the node as the scheduler sees it, not as it was changed for
// the trial.
func (p *Plugin) trialOf(own *podState, info fwk.NodeInfo) *trial {
	name := info.Node().Name
	if own.trials[name] == nil {
		if seen, err := p.handle.SnapshotSharedLister().NodeInfos().Get(name); err == nil {
			info = seen
		}
		if own.trials == nil {
			own.trials = map[string]*trial{}
		}
		own.trials[name] = &trial{
			info: info, node: p.cluster.Room(info).Node(), gone: p.cluster.Gone(info), removed: map[string]*v1.Pod{},
		}
	}
	return own.trials[name]
}

// besideNominated returns a node with the pods that are nominated for it and go before pod, which gets what they leave.
func (p *Plugin) besideNominated(info fwk.NodeInfo, pod *v1.Pod) *ledger.Node {
	trial := &trial{info: info, node: p.cluster.Room(info).Node()}
	for _, one := range p.handle.NominatedPodsForNode(info.Node().Name) {
		other := one.GetPod()
		if other.UID != pod.UID && podapi.Priority(other) >= podapi.Priority(pod) && !trial.node.HasUnits(string(other.UID)) {
			p.nominate(trial, other)
		}
	}
	return trial.node
}

// nominate counts a pod that will be bound to the node: on the cards that its own attempt frees, whoever of its victims is gone by
// now. On others still others would have to go, and the first ones in vain. Where it cannot get those, or nothing is remembered, it
// counts on cards that are free once all is released of the pods that are gone, or ending and less important. Only where that is not
// enough either does it get what the removed pods leave, and then what all less important pods leave. If it got what the removed
// pods leave sooner, more pods would have to go.
func (p *Plugin) nominate(trial *trial, pod *v1.Pod) {
	resources := p.cluster.Resources()
	if !podapi.AsksForAny(pod, resources) || pod.DeletionTimestamp != nil {
		return
	}
	asked, less, later := cluster.Ask(pod, resources), lessImportant(trial.info, pod), trial.node.Clone()
	leaving, place := p.cluster.Leaving(trial.info, podapi.Priority(pod)), trial.node.Clone()
	place.TakeAway(slices.Concat(leaving, less)...)
	holder, _ := place.Among(p.places.of(pod.UID, trial.info.Node().Name)).Reserve(string(pod.UID), asked.Request)
	for _, goes := range [][]string{leaving, slices.Collect(maps.Keys(trial.removed)), less} {
		if holder == nil {
			later.TakeAway(goes...)
			holder, _ = later.Reserve(string(pod.UID), asked.Request)
		}
	}
	if holder != nil {
		trial.node.Add(holder)
		trial.isShared = true
	}
}

// lessImportant returns the UIDs of the pods of a node that are less important than pod.
func lessImportant(info fwk.NodeInfo, pod *v1.Pod) []string {
	var less []string
	for _, one := range info.GetPods() {
		if other := one.GetPod(); podapi.Priority(other) < podapi.Priority(pod) {
			less = append(less, string(other.UID))
		}
	}
	return less
}

// filterTrial says whether the pod fits a node as it would be.
func (p *Plugin) filterTrial(own *podState, name string, trial *trial) *fwk.Status {
	if trial.isOfEvictions {
		return p.filterWithout(own, name, trial)
	}
	_, refusal := trial.node.Fit(own.asked.Request)
	if refusal != nil {
		own.refused.note(name, refusal)
	}
	return statusOf(refusal, own.asked.Request, trial.node.Preempts())
}

// filterWithout says whether the pod fits a node without those that are removed: while all of those are that have to go.
func (p *Plugin) filterWithout(own *podState, name string, trial *trial) *fwk.Status {
	plan := own.plans.planFor(name, trial, func() *plan { return p.plan(own.asked, trial) })
	if !plan.isPossible {
		return fwk.NewStatus(fwk.Unschedulable, "no pods that may be evicted would free enough")
	}
	own.places.Store(name, plan.place)
	if !plan.isDone(trial) {
		return fwk.NewStatus(fwk.Unschedulable, "pods that use the card that is to be freed have to go")
	}
	if trial.isShared {
		_, refusal := trial.without().Fit(own.asked.Request)
		return statusOf(refusal, own.asked.Request, true)
	}
	return nil
}

// plan decides which of the removed pods have to go beside those that are gone. It says the same of the same pods each time.
func (p *Plugin) plan(asked *cluster.Asked, trial *trial) *plan {
	node := trial.node.Clone()
	node.TakeAway(trial.gone...)
	var pods []victims.Pod
	for _, uid := range slices.Sorted(maps.Keys(trial.removed)) {
		if pod := trial.removed[uid]; node.HasUnits(uid) && !podapi.ComesBack(pod) {
			pods = append(pods, victims.Pod{
				UID: uid, Priority: podapi.Priority(pod), Started: podapi.Started(pod),
				IsEnding: pod.DeletionTimestamp != nil,
			})
		}
	}
	made := &plan{among: maps.Clone(trial.removed)}
	made.victims, made.isPossible = victims.Find(node, asked.Request, pods, p.protector(made.among))
	node.TakeAway(made.victims...)
	if holder, _ := node.Reserve("", asked.Request); holder != nil {
		made.place = holder.Cards
	}
	return made
}

// protector returns which pods disruption budgets would not let go.
func (p *Plugin) protector(pods map[string]*v1.Pod) victims.Protected {
	return func(chosen []victims.Pod) map[string]bool {
		budgets, err := p.budgets.List(labels.Everything())
		if err != nil || len(budgets) == 0 {
			return nil
		}
		allowed, kept := map[*policyv1.PodDisruptionBudget]int32{}, map[string]bool{}
		for _, budget := range budgets {
			allowed[budget] = budget.Status.DisruptionsAllowed
		}
		for _, one := range chosen {
			for _, budget := range budgets {
				if counts(budget, pods[one.UID]) {
					allowed[budget]--
					kept[one.UID] = kept[one.UID] || allowed[budget] < 0
				}
			}
			if !kept[one.UID] {
				delete(kept, one.UID)
			}
		}
		return kept
	}
}

// counts says whether the eviction of a pod takes one of the disruptions that a budget allows.
func counts(budget *policyv1.PodDisruptionBudget, pod *v1.Pod) bool {
	if budget.Namespace != pod.Namespace || budget.Spec.Selector == nil {
		return false
	}
	if _, isCounted := budget.Status.DisruptedPods[pod.Name]; isCounted {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}
