package cases

import (
	"encoding/json"
	"slices"
	"time"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/binding"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/sharenode"
)

type clusterQuestion struct {
	// Nodes are GPUShareNodes: as objects, or as texts where they are to be read byte for byte.
	Nodes []json.RawMessage `json:"nodes"`
	Pods  []askedPod        `json:"pods"`
	// Asks are pods that wait for a node.
	Asks []askedPod `json:"asks"`
	// Gone are UIDs of pods that would be evicted.
	Gone []string `json:"gone"`
	// Now is in microseconds since 1970.
	Now int64 `json:"now"`
}

// answerCluster is asked what fits where, and how well.
func answerCluster(given clusterQuestion) any {
	world := newWorld()
	names := []string{}
	for _, raw := range given.Nodes {
		if name, ok := world.setShare(raw); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, pod := range given.Pods {
		world.setPod(pod)
	}
	nodes, asks := object{}, []any{}
	for _, name := range names {
		nodes[name] = describe(world.node(name), world.book.ShareNode(name))
	}
	for _, ask := range given.Asks {
		asks = append(asks, answerAsk(world, names, ask, given))
	}
	return object{"nodes": nodes, "asks": asks}
}

// describe returns what is free on a node.
func describe(node *ledger.Node, share *sharenode.Node) any {
	if share == nil {
		return nil
	}
	rooms := []any{}
	for _, room := range node.Room() {
		rooms = append(rooms, [5]any{room.Name, room.Class.String(), room.Greatest, room.Possible, room.Closed})
	}
	seen := object{}
	for _, resource := range share.Resources {
		cards := []any{}
		for _, card := range node.Cards(resource.Class) {
			cards = append(cards, [6]any{card.UUID, card.Index, card.Units, card.Allocated, card.Open, card.Lockable})
		}
		seen[resource.Name] = cards
	}
	return object{"room": rooms, "cards": seen, "closed": share.ClosedReason, "preempts": share.Preempts}
}

// answerAsk returns how well a pod fits each node, and what it would get there.
func answerAsk(world *world, names []string, ask askedPod, given clusterQuestion) any {
	request := cards.ReadRequest(ask.Spec.pod(), world.book.Resources())
	reason := request.Unservable()
	if reason == "" {
		reason = allocation.LackOfRoom(allocation.SizeBesideOurs(ask.Annotations), allocation.WorstSize(request))
	}
	if reason != "" || len(request.Parts) == 0 {
		return object{"reason": reason}
	}
	if world.book.Holder(ask.UID) != nil {
		return answerHolder(world, names, ask.UID, request)
	}
	told := tally{world: world, ask: ask, request: request, answers: object{}}
	for _, name := range names {
		told.add(name, given)
	}
	return object{
		"reason": "", "nodes": told.answers, "scores": cards.Scores(told.fits), "sentences": told.sentences(),
	}
}

// tally is what is told of all nodes to a pod that asks.
type tally struct {
	world    *world
	ask      askedPod
	request  cards.Request
	answers  object
	fits     []cards.Ranked
	unfit    []string
	refusals []*ledger.Refusal
}

func (t *tally) add(name string, given clusterQuestion) {
	node := t.world.node(name)
	told := bound(t.world, node, t.ask.UID, t.request, time.UnixMicro(given.Now))
	ranked, refusal := node.Fit(t.request)
	if refusal != nil {
		told = refused(refusal, t.request)
		t.refusals, t.unfit = append(t.refusals, refusal), append(t.unfit, name)
	} else {
		told["key"], t.fits = ranked.Key, append(t.fits, ranked)
	}
	told["after"] = chosenOf(without(node, given.Gone).Choose(t.request))
	t.answers[name] = told
}

func (t *tally) sentences() map[string]string {
	sentences := map[string]string{}
	for place, sentence := range ledger.Sentences(t.refusals, t.request) {
		sentences[t.unfit[place]] = sentence
	}
	return sentences
}

// without returns what a node would be if some pods were gone.
func without(node *ledger.Node, gone []string) *ledger.Node {
	after := node.Clone()
	for _, uid := range gone {
		after.TakeAway(uid)
	}
	return after
}

// answerHolder returns on which nodes a pod may be that has units already.
func answerHolder(world *world, names []string, uid string, request cards.Request) any {
	answers := object{}
	for _, name := range names {
		answers[name] = ""
		if refusal := world.book.HeldElsewhere(uid, name); refusal != nil {
			answers[name] = refusal.Words(request)
		}
	}
	return object{"reason": "", "held": answers}
}

func refused(refusal *ledger.Refusal, request cards.Request) object {
	return object{
		"words": refusal.Words(request), "kind": refusal.Kind, "resolvable": refusal.IsResolvable,
		"resource": refusal.Resource, "nearness": refusal.Nearness,
	}
}

// bound returns what a pod would get of a node, and what its Binding would write; nothing where it does not fit.
func bound(world *world, node *ledger.Node, uid string, request cards.Request, now time.Time) object {
	holder, choices := node.Reserve(uid, request)
	if holder == nil {
		return nil
	}
	share := world.book.ShareNode(holder.Node)
	written := binding.Of(binding.AllocationOf(holder, request, share, now), share, now)
	reasons := []string{}
	for _, choice := range choices {
		reasons = append(reasons, choice.Reason)
	}
	return object{
		"chosen": chosenOf(choices), "reasons": reasons,
		"annotations": written.Annotations, "room": written.Room,
	}
}

func chosenOf(choices []ledger.Choice) []any {
	chosen := []any{}
	for _, choice := range choices {
		chosen = append(chosen, [2]any{choice.Part.Name, shares(choice.Shares)})
	}
	return chosen
}
