// Package ledger works out what of which card is free: from the pods of a node as the scheduler sees them, and
// from the node's GPUShareNode.
//
// It says the same as core's scheduling/ledger. Amounts are units, in the unit of the node where nothing else is
// said.
package ledger

import (
	"slices"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/dialects"
	"gpushare.io/scheduler/internal/jsontext"
	"gpushare.io/scheduler/internal/sharenode"
	"gpushare.io/scheduler/internal/unit"
)

// Holder is what a pod has of the cards of one node, or has reserved there. It never changes.
type Holder struct {
	UID, Node string
	// Cards are the units of each card, in the unit that they were granted in.
	Cards []cards.Share
	// Meaning is that unit; the zero Meaning stands for the node's own.
	Meaning unit.Meaning
	// Others are cards with another unit: a pod of several classes has cards of each.
	Others []CardMeaning
}

// CardMeaning is what a unit of a card (UUID) means.
type CardMeaning struct {
	Card    string
	Meaning unit.Meaning
}

// MeaningOf returns the unit in which the pod has units of a card.
func (h *Holder) MeaningOf(card string) unit.Meaning {
	for _, other := range h.Others {
		if other.Card == card {
			return other.Meaning
		}
	}
	return h.Meaning
}

// countsAs says whether both have the same on the same node, as a reservation and its allocation do.
func (h *Holder) countsAs(other *Holder) bool {
	return h.Node == other.Node && h.Meaning == other.Meaning &&
		slices.Equal(h.Cards, other.Cards) && slices.Equal(h.Others, other.Others)
}

// HolderOf returns what a pod has by its annotation.
func HolderOf(given *allocation.Allocation) *Holder {
	holder := &Holder{
		UID:     given.UID,
		Node:    given.Node,
		Cards:   given.Held(),
		Meaning: unit.MeaningOf(given.Unit),
	}
	for _, other := range given.OtherUnits {
		if meaning := unit.MeaningOf(other.Unit); meaning != (unit.Meaning{}) {
			holder.Others = append(holder.Others, CardMeaning{other.Card, meaning})
		}
	}
	return holder
}

// Pod is a bound pod, as far as the ledger is concerned. It never changes: a pod is read once for each version.
type Pod struct {
	UID string
	// Node is where the pod is bound.
	Node string
	// holder is nil where no annotation of ours is believed.
	holder *Holder
	// claims are what replaced systems wrote, by the names of their dialects, where holder is nil.
	claims  map[string]dialects.Claim
	request cards.Request
}

// ReadPod returns what the annotations of a bound pod say, and why one that is there is not believed. It asks for
// the pod's request where only a replaced system has written on the pod.
func ReadPod(uid, node string, annotations map[string]string, request func() cards.Request) (*Pod, []error) {
	pod := &Pod{UID: uid, Node: node}
	var problems []error
	if text, has := annotations[allocation.Annotation]; has {
		given, err := allocation.Read(text, uid)
		if err == nil {
			pod.holder = HolderOf(given)
			return pod, nil
		}
		problems = append(problems, err) // such as of the pod that this one is a copy of: the others still count
	}
	claims, unread := dialects.Claims(annotations)
	if len(claims) > 0 {
		pod.claims, pod.request = claims, request()
	}
	return pod, append(problems, unread...)
}

// legacyHolder returns what the pod has of a node by what the system that its dialect replaces wrote; nil where
// nothing of it can be believed, and while the node's cards are unknown.
//
// Nobody protected that system's annotations. So they count only on a node whose policy has the system's dialect,
// and only where our records do not know the pod. Only the card is taken from them: the pod's own request says how
// much.
func (p *Pod) legacyHolder(share *sharenode.Node) *Holder {
	if p.claims == nil || share == nil || len(share.Units) == 0 {
		return nil
	}
	claim, claims := p.claims[share.Dialect.Name]
	part, asks := share.Dialect.AskedOf(p.request)
	if !claims || !asks {
		return nil
	}
	holder := &Holder{UID: p.UID, Node: p.Node, Meaning: share.UnitOf(part.Class).Meaning}
	if holder.Meaning == (unit.Meaning{}) {
		// The node serves other classes now: the pod's class alone makes the whole card taken.
		holder.Meaning = unit.OneOf(part.Class)
	}
	for _, one := range claim.Shares(min(part.Total, jsontext.MaxNumber)) {
		if uuid, has := uuidAt(share, one.Index); has {
			holder.Cards = cards.Put(holder.Cards, uuid, one.Units)
		}
	}
	if len(holder.Cards) == 0 {
		return nil
	}
	return holder
}

// uuidAt returns the UUID of the card with an index, the last one where several have it.
func uuidAt(share *sharenode.Node, index int64) (string, bool) {
	for _, card := range slices.Backward(share.Cards) {
		if card.Index == index {
			return card.UUID, true
		}
	}
	return "", false
}

// ClaimsUnits says whether an annotation says that the pod has units: ours, or one of a replaced system.
func (p *Pod) ClaimsUnits() bool { return p.holder != nil || p.claims != nil }

// IsAnnotated says whether an annotation of ours on the pod is believed.
func (p *Pod) IsAnnotated() bool { return p.holder != nil }

// IsOfAnotherNode says whether an annotation of ours on the pod is believed, and names another node than the pod's.
func (p *Pod) IsOfAnotherNode() bool { return p.holder != nil && p.holder.Node != p.Node }
