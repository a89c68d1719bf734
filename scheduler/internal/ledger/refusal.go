package ledger

import "gpushare.io/scheduler/internal/cards"

// Kind is one of the few kinds of refusals.
type Kind string

// The kinds of refusals by a node.
const (
	// NoRoom: it would fit if other pods went.
	NoRoom Kind = "NoRoom"
	// CardsTooSmall: not even the empty node takes it.
	CardsTooSmall    Kind = "CardsTooSmall"
	NotTogether      Kind = "NotTogether"
	OtherResource    Kind = "OtherResource"
	SeveralResources Kind = "SeveralResources"
	NodeClosed       Kind = "NodeClosed"
	NotShared        Kind = "NotShared"
	// HeldElsewhere: the pod has units on another node already.
	HeldElsewhere Kind = "HeldElsewhere"
)

// The kinds of refusals for which no node is to blame.
const (
	CrowdedContainer Kind = "CrowdedContainer"
	// TooManyUnits: the kubelet could not write the pod's status.
	TooManyUnits Kind = "TooManyUnits"
	// AnnotationsFull: our annotations would not fit beside the pod's own.
	AnnotationsFull Kind = "AnnotationsFull"
)

// Kinds are all of them.
var Kinds = [...]Kind{
	NoRoom, CardsTooSmall, NotTogether, OtherResource, SeveralResources, CrowdedContainer, TooManyUnits,
	AnnotationsFull, NodeClosed, NotShared, HeldElsewhere,
}

// Refusal is why a request does not fit a node.
type Refusal struct {
	// Message is for people, without what the containers ask for.
	Message string
	Kind    Kind
	// IsResolvable says whether it would fit if other pods went.
	IsResolvable bool
	// Resource is the one that does not suffice; empty where the reason is another one.
	Resource string
	// Nearness is the greater, the less of Resource is missing.
	Nearness [2]int64
}

var (
	notTogether = &Refusal{
		Message: "insufficient GPU cards for all resources of the pod together", Kind: NotTogether, IsResolvable: true,
	}
	unknownNode = &Refusal{Message: "node(s) that share no GPU cards", Kind: NotShared}
)

// Words returns for people why request does not fit, with what its containers ask for.
func (r *Refusal) Words(request cards.Request) string {
	for _, part := range request.Parts {
		if part.Name == r.Resource {
			return r.Message + part.ByContainer()
		}
	}
	return r.Message
}

// refusal returns why request, which does not fit, does not fit the node.
func (n *Node) refusal(room []ResourceRoom, request cards.Request) *Refusal {
	if !n.isOpen() {
		return &Refusal{Message: n.share.ClosedReason, Kind: NodeClosed}
	}
	if len(request.Parts) > max(1, len(room)) {
		return &Refusal{Message: request.SeveralResourcesReason(), Kind: SeveralResources}
	}
	var first *Refusal
	for _, part := range request.Parts {
		found := partRefusal(part, room)
		if found != nil && (first == nil || first.IsResolvable && !found.IsResolvable) {
			first = found
		}
	}
	if first == nil {
		return notTogether
	}
	return first
}

// partRefusal returns nil where a part fits if the pod asks for nothing else.
func partRefusal(part cards.Part, rooms []ResourceRoom) *Refusal {
	room := roomOf(rooms, part.Name)
	if room == nil {
		served := make([]string, len(rooms))
		for place := range rooms {
			served[place] = rooms[place].Name
		}
		return &Refusal{Message: cards.OtherResourceReason(part.Name, served), Kind: OtherResource}
	}
	if part.Total <= room.Greatest {
		return nil
	}
	refusal := &Refusal{
		Message: cards.ModeOf(part.Class).Explain(part.Total, room.Room), Kind: CardsTooSmall, Resource: part.Name,
		Nearness: [2]int64{room.Possible, room.Greatest},
	}
	if part.Total <= room.Possible {
		refusal.Kind, refusal.IsResolvable = NoRoom, true
		refusal.Nearness = [2]int64{room.Greatest, room.Possible}
	}
	return refusal
}
