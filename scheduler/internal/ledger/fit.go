package ledger

import (
	"slices"

	"gpushare.io/scheduler/internal/cards"
)

// Choice is what one resource of a request gets, and the cards that it was chosen from.
type Choice struct {
	Part   cards.Part
	Shares []cards.Share
	// Reason says why it gets these cards, for people.
	Reason string
}

// ResourceRoom is what a node offers of one resource to one request.
type ResourceRoom struct {
	cards.Resource
	cards.Room
}

func (n *Node) isOpen() bool { return n.share != nil && n.share.ClosedReason == "" }

// Room returns what the node offers of each resource that it serves; nothing where it takes no pods of ours.
func (n *Node) Room() []ResourceRoom {
	if !n.isOpen() {
		return nil
	}
	rooms := make([]ResourceRoom, len(n.share.Resources))
	for place, resource := range n.share.Resources {
		rooms[place] = ResourceRoom{resource, n.roomFor(resource.Class)}
	}
	return rooms
}

func (n *Node) roomFor(class cards.Class) cards.Room {
	free, all := make([]int64, 0, len(n.share.Cards)), make([]int64, 0, len(n.share.Cards))
	for place := range n.share.Cards {
		if n.share.Cards[place].IsOpen() {
			units, allocated := n.amounts(place, class, n.uses[place])
			free, all = append(free, units-allocated), append(all, units)
		}
	}
	mode := cards.ModeOf(class)
	return cards.Room{
		Greatest: mode.Greatest(free), Possible: mode.Greatest(all), Closed: len(n.share.Cards) - len(all),
	}
}

// Choose returns what each resource of request gets; nothing when they do not fit together. No card serves two
// classes. Memory, the first of the classes, chooses first: not every card is large enough for it.
func (n *Node) Choose(request cards.Request) []Choice {
	var choices []Choice
	for _, one := range n.choose(request) {
		one.Reason = cards.ModeOf(one.Part.Class).Reason(one.from, one.Shares, one.strategy)
		choices = append(choices, one.Choice)
	}
	return choices
}

// tried is a Choice that nobody has asked the reason of.
type tried struct {
	Choice
	from     []cards.Card
	strategy cards.Strategy
}

// Fits says whether Choose would return something.
func (n *Node) Fits(request cards.Request) bool { return len(n.choose(request)) > 0 }

func (n *Node) choose(request cards.Request) []tried {
	var chosen []tried
	for _, part := range request.Parts {
		one := n.choosePart(part, chosen)
		if len(one.Shares) == 0 {
			return nil
		}
		chosen = append(chosen, one)
	}
	return chosen
}

// choosePart returns what one resource would get of the cards that chosen leaves.
func (n *Node) choosePart(part cards.Part, chosen []tried) tried {
	if !n.isOpen() || !n.share.Serves(part.Name) {
		return tried{}
	}
	left := n.seen[part.Class]
	for _, earlier := range chosen {
		left = without(left, earlier.Shares)
	}
	shares := cards.ModeOf(part.Class).Choose(left, part.Total, n.share.Strategy)
	return tried{Choice{Part: part, Shares: shares}, left, n.share.Strategy}
}

func without(all []cards.Card, shares []cards.Share) []cards.Card {
	isTaken := func(card cards.Card) bool {
		return slices.ContainsFunc(shares, func(share cards.Share) bool { return share.Card == card.UUID })
	}
	return slices.DeleteFunc(slices.Clone(all), isTaken)
}

// Fit says how good the node is for request, which asks for something, or why request does not fit. Of several
// resources the first one ranks.
func (n *Node) Fit(request cards.Request) (cards.Ranked, *Refusal) {
	if n.share == nil {
		return cards.Ranked{}, unknownNode
	}
	chosen := n.choose(request)
	if len(chosen) == 0 {
		return cards.Ranked{}, n.refusal(n.Room(), request)
	}
	class, shares := chosen[0].Part.Class, chosen[0].Shares
	candidate := cards.NewCandidate(n.seen[class], shares, class, n.classes, n.share.ComputeScore)
	strategy := n.share.Strategy
	return cards.Ranked{Node: n.share.Name, Strategy: strategy, Key: candidate.Key(strategy)}, nil
}

func roomOf(rooms []ResourceRoom, name string) *ResourceRoom {
	for place := range rooms {
		if rooms[place].Name == name {
			return &rooms[place]
		}
	}
	return nil
}
