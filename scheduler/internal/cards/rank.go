package cards

import "slices"

// Scores are from 0 for a node that does not fit to Best: the scale of kube-scheduler's extenders.
const (
	Best = 10
	// Second is the most that any but the best gets: the distance to the best is what has to outweigh others'
	// scores.
	Second = 2
)

// Candidate is a node that fits, as far as ranking goes.
type Candidate struct {
	// Class is what the request asks for.
	Class Class
	// ComputeScore is that of the node's fastest card.
	ComputeScore int64
	// Allocated are the units allocated on the node.
	Allocated int64
	// Holds are the classes that pods have of its cards now.
	Holds ClassSet
	// LeftOver are the units that the chosen cards together have free afterwards.
	LeftOver int64
	// FreeCards are those that nobody uses afterwards.
	FreeCards int64
	// NUMANodes and LinkGroups are how many of them the chosen cards are of.
	NUMANodes, LinkGroups int64
}

// ClassSet is a set of classes.
type ClassSet uint8

// With returns the set with class; without a change for the zero class.
func (s ClassSet) With(class Class) ClassSet {
	if class == 0 {
		return s
	}
	return s | 1<<class
}

func (s ClassSet) has(class Class) bool { return s&(1<<class) != 0 }

// Key ranks a node among the candidates for the same request and strategy: the least is best.
type Key [6]int64

// Compare is negative where k is better than other.
func (k Key) Compare(other Key) int { return slices.Compare(k[:], other[:]) }

// NewCandidate returns what the node with cards is once those chosen are taken.
func NewCandidate(cards []Card, chosen []Share, class Class, holds ClassSet, computeScore int64) Candidate {
	candidate := Candidate{Class: class, Holds: holds, ComputeScore: computeScore}
	var groups []group
	for place := range cards {
		card := &cards[place]
		candidate.Allocated += card.Allocated
		if units, is := unitsOn(chosen, card.UUID); is {
			candidate.LeftOver += card.Free() - units
			groups = append(groups, group{card.NUMANode, card.LinkGroup})
		} else {
			candidate.FreeCards += bit(card.isUnused())
		}
	}
	candidate.LinkGroups = distinct(groups)
	for place := range groups {
		groups[place][1] = 0
	}
	candidate.NUMANodes = distinct(groups)
	return candidate
}

func distinct(groups []group) int64 {
	number := int64(0)
	for place, one := range groups {
		number += bit(!slices.Contains(groups[:place], one))
	}
	return number
}

// Key returns how the candidate ranks. Shared work (memory, slices) goes to nodes
//
//  1. with slow cards,
//  2. that share already,
//  3. where it leaves the least of its cards over,
//  4. with few free cards.
//
// Whole cards go the other way round, so that free cards stay free for pods that need whole ones: to nodes
//
//  1. with fast cards,
//  2. where the cards lie together,
//  3. that nobody shares,
//  4. that hold whole cards already,
//  5. where the fewest free cards are left over: a node is filled before another is begun.
//
// Spread keeps the order of speed, and then takes the emptiest node and card.
func (c Candidate) Key(strategy Strategy) Key {
	isNew := bit(!c.Holds.has(c.Class))
	switch {
	case c.Class == Whole && strategy == Spread:
		return Key{-c.ComputeScore, c.NUMANodes, c.LinkGroups, c.Allocated}
	case c.Class == Whole:
		isShared := bit(c.Holds.has(Memory) || c.Holds.has(Slice))
		return Key{-c.ComputeScore, c.NUMANodes, c.LinkGroups, isShared, isNew, c.FreeCards}
	case strategy == Spread:
		return Key{c.ComputeScore, c.Allocated, -c.LeftOver}
	}
	return Key{c.ComputeScore, isNew, c.LeftOver, c.FreeCards}
}

// Ranked is a node that fits a request.
type Ranked struct {
	Node     string
	Strategy Strategy
	Key      Key
}

// Scores returns a score for every node, by its name: Best for the best of each strategy, from Second down to 1
// for the others. Of equal nodes the first by name is the best one with Binpack.
func Scores(nodes []Ranked) map[string]int64 {
	scores := make(map[string]int64, len(nodes))
	for _, strategy := range [...]Strategy{Binpack, Spread} {
		keys := keysOf(nodes, strategy)
		for _, node := range nodes {
			if node.Strategy == strategy {
				place, _ := slices.BinarySearchFunc(keys, node.Key, Key.Compare)
				scores[node.Node] = scoreAt(place, len(keys))
			}
		}
	}
	oneBest(nodes, scores)
	return scores
}

func keysOf(nodes []Ranked, strategy Strategy) []Key {
	var keys []Key
	for place := range nodes {
		node := &nodes[place] // thousands of them have few keys
		if node.Strategy == strategy && (len(keys) == 0 || node.Key != keys[len(keys)-1]) {
			keys = append(keys, node.Key)
		}
	}
	slices.SortFunc(keys, Key.Compare)
	return slices.Compact(keys)
}

// scoreAt returns the score of the key at place of a number of different keys.
func scoreAt(place, number int) int64 {
	if place == 0 {
		return Best
	}
	return int64(Second - (place-1)*Second/max(1, number-1))
}

// oneBest leaves Best to the first by name of those that Binpack finds equally good.
func oneBest(nodes []Ranked, scores map[string]int64) {
	isBest := func(node *Ranked) bool { return node.Strategy == Binpack && scores[node.Node] == Best }
	first := ""
	for place := range nodes {
		if name := nodes[place].Node; isBest(&nodes[place]) && (first == "" || name < first) {
			first = name
		}
	}
	for place := range nodes {
		if name := nodes[place].Node; isBest(&nodes[place]) && name != first {
			scores[name] = Second
		}
	}
}
