// Package victims decides which pods have to go so that a request fits a node's cards. Pure.
//
// In this order: 1. no pod goes that is more important than need be; 2. as few as possible; 3. those that began last.
// It says the same as core's scheduling/preemption/victims.py, which never finds pods that disruption budgets protect.
package victims

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/ledger"
)

// Pod is a pod of the node that may go.
type Pod struct {
	UID      string
	Priority int32
	Started  time.Time
	// IsEnding says of a pod that it is being deleted already: that it goes costs nothing.
	IsEnding bool
	// isProtected says that a budget has to be overruled for it.
	isProtected bool
}

// Protected says which of pods, evicted in this order, disruption budgets would not let go, by UID.
type Protected func(pods []Pod) map[string]bool

// Find returns the UIDs of those of pods that have to be gone so that request fits node, whose units nobody has taken
// away yet; false where nothing helps. It looks for victims that no budget protects first, then for those with the fewest
// that one does.
func Find(node *ledger.Node, request cards.Request, pods []Pod, protected Protected) ([]string, bool) {
	search := &search{node: node, request: request, kept: map[string]bool{}}
	for _, pod := range pods {
		if pod.IsEnding {
			search.ending = append(search.ending, pod.UID)
		}
	}
	left := slices.DeleteFunc(sorted(pods, compareImportance), func(pod Pod) bool { return pod.IsEnding })
	chosen, found := search.sparing(left, protected)
	if !found {
		chosen, found = search.overruling(left, protected)
	}
	if !found {
		return nil, false
	}
	return search.withEnding(chosen), true
}

// search looks for victims on one node, among pods that are sorted, the least important first.
type search struct {
	node    *ledger.Node
	request cards.Request
	// ending are gone in any case.
	ending []string
	// kept are the UIDs of those that budgets protect.
	kept map[string]bool
}

// protection is 1 for a pod for which a budget has to be overruled.
func (p *Pod) protection() int {
	if p.isProtected {
		return 1
	}
	return 0
}

// fits says whether the request fits once those that are ending are gone, and pods.
func (s *search) fits(gone []Pod) bool {
	uids := slices.Clone(s.ending)
	for _, pod := range gone {
		uids = append(uids, pod.UID)
	}
	if len(uids) == 0 {
		return s.node.Fits(s.request)
	}
	node := s.node.Clone()
	node.TakeAway(uids...)
	return node.Fits(s.request)
}

// sparing returns victims that no budget protects; false where there are none.
func (s *search) sparing(pods []Pod, protected Protected) ([]Pod, bool) {
	left := slices.Clone(pods)
	for {
		chosen, found := s.victims(left)
		if !found {
			return nil, false
		}
		kept := protected(chosen)
		if len(kept) == 0 {
			return chosen, true
		}
		maps.Copy(s.kept, kept)
		left = slices.DeleteFunc(left, func(pod Pod) bool { return kept[pod.UID] })
	}
}

// overruling returns the victims of which budgets protect the fewest; false where nothing helps. sparing has not asked about all of
// those that are protected.
func (s *search) overruling(pods []Pod, protected Protected) ([]Pod, bool) {
	for {
		chosen, found := s.victims(s.withProtection(pods))
		before := len(s.kept)
		maps.Copy(s.kept, protected(chosen))
		if len(s.kept) == before {
			return chosen, found
		}
	}
}

// withProtection returns pods, those as the most important ones that budgets protect.
func (s *search) withProtection(pods []Pod) []Pod {
	marked := slices.Clone(pods)
	for place := range marked {
		marked[place].isProtected = s.kept[marked[place].UID]
	}
	return sorted(marked, compareImportance)
}

// victims frees one card after the other, the cheapest first, until the request fits.
func (s *search) victims(pods []Pod) ([]Pod, bool) {
	var chosen []Pod
	for !s.fits(chosen) {
		best, found := s.cheapest(pods, chosen)
		if !found {
			return nil, false
		}
		chosen = append(chosen, best...)
	}
	return s.fewer(withoutNeedless(chosen, s.fits), pods), true
}

// fewer returns chosen, or fewer, of which budgets protect no more: one pod that is spread over several cards for two or more
// others. To try all sets would take too long with dozens of pods. Of 17,451 random nodes with slices 498 lost a pod too many
// before, and 2 do with it.
func (s *search) fewer(chosen, pods []Pod) []Pod {
	for _, one := range pods {
		if len(chosen) < 2 || one.Priority > costOf(chosen).highest || !s.node.IsSpread(one.UID) || contains(chosen, one.UID) {
			continue
		}
		fewer := append(withoutNeedless(chosen, func(others []Pod) bool { return s.fits(append(others, one)) }), one)
		if len(fewer) < len(chosen) && costOf(fewer).protected <= costOf(chosen).protected {
			chosen = fewer
		}
	}
	return chosen
}

// cheapest returns the pods that free one more card at the least cost.
func (s *search) cheapest(pods, gone []Pod) ([]Pod, bool) {
	var best []Pod
	for _, part := range s.request.Parts {
		for _, card := range s.node.Cards(part.Class) {
			option := s.toFree(card.UUID, part, pods, gone)
			if len(option) > 0 && (best == nil || compareCost(option, best) < 0) {
				best = option
			}
		}
	}
	return best, best != nil
}

// toFree returns the pods without which a card has room; none where nothing helps, and where it has room already.
func (s *search) toFree(uuid string, part cards.Part, pods, gone []Pod) []Pod {
	card := s.node.Card(uuid)
	for _, uid := range s.ending {
		card.TakeAway(uid)
	}
	takeAway(&card, gone)
	hasRoom := func(more []Pod) bool {
		left := card
		takeAway(&left, more)
		return left.Fits(part.Class, unitsOnOne(part))
	}
	if hasRoom(nil) {
		return nil
	}
	var there []Pod
	for _, pod := range pods {
		if card.UnitsOf(pod.UID) != 0 && !contains(gone, pod.UID) {
			there = append(there, pod)
		}
	}
	return fewest(there, card.UnitsOf, hasRoom)
}

func takeAway(card *ledger.Card, pods []Pod) {
	for _, pod := range pods {
		card.TakeAway(pod.UID)
	}
}

// unitsOnOne returns what a request takes of one card: all units of memory are on one, and one slice is on each.
func unitsOnOne(part cards.Part) int64 {
	if part.Class == cards.Memory {
		return part.Total
	}
	return 1
}

// fewest returns the least important of pods that are enough, as few as possible; none where all are not enough. units
// returns what a pod has.
func fewest(pods []Pod, units func(uid string) int64, enough func([]Pod) bool) []Pod {
	allowed := upToLeastPriority(pods, enough)
	if allowed == nil {
		return nil
	}
	bySize := sorted(allowed, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.protection(), b.protection()), cmp.Compare(units(b.UID), units(a.UID)), compareImportance(a, b))
	})
	number := 1
	for !enough(bySize[:number]) {
		number++
	}
	return lessImportant(withoutNeedless(bySize[:number], enough), allowed, enough)
}

// upToLeastPriority returns all pods up to the lowest priority that is enough, or all where protected ones have to go.
func upToLeastPriority(pods []Pod, enough func([]Pod) bool) []Pod {
	for end := range pods {
		isLast := end+1 == len(pods) || !pods[end].isProtected && compareLevel(pods[end], pods[end+1]) != 0
		if isLast && enough(pods[:end+1]) {
			return pods[:end+1]
		}
	}
	return nil
}

// withoutNeedless spares the most important ones first.
func withoutNeedless(pods []Pod, enough func([]Pod) bool) []Pod {
	kept := mostImportantFirst(pods)
	for _, pod := range slices.Clone(kept) {
		others := slices.DeleteFunc(slices.Clone(kept), func(other Pod) bool { return other.UID == pod.UID })
		if enough(others) {
			kept = others
		}
	}
	return kept
}

// lessImportant returns chosen, each replaced by the least important pod that will do in its place.
func lessImportant(chosen, allowed []Pod, enough func([]Pod) bool) []Pod {
	kept := mostImportantFirst(chosen)
	for place, pod := range kept {
		others := slices.Delete(slices.Clone(kept), place, place+1)
		for _, other := range allowed {
			if contains(others, other.UID) {
				continue
			}
			if other.UID == pod.UID || enough(slices.Concat(others, []Pod{other})) {
				kept[place] = other
				break
			}
		}
	}
	return kept
}

// withEnding returns the UIDs of chosen, and of those that are ending and have to be gone, too.
func (s *search) withEnding(chosen []Pod) []string {
	uids := make([]string, 0, len(chosen)+len(s.ending))
	for _, pod := range chosen {
		uids = append(uids, pod.UID)
	}
	all := s.ending
	for _, uid := range slices.Clone(all) {
		s.ending = slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other == uid })
		if s.fits(chosen) {
			all = s.ending
		}
	}
	s.ending = all
	return append(uids, all...)
}

func contains(pods []Pod, uid string) bool {
	return slices.ContainsFunc(pods, func(pod Pod) bool { return pod.UID == uid })
}

// compareImportance is negative where a is less important: not protected, a lower priority, or the same and begun later.
func compareImportance(a, b Pod) int {
	return cmp.Or(compareLevel(a, b), b.Started.Compare(a.Started))
}

func compareLevel(a, b Pod) int {
	return cmp.Or(cmp.Compare(a.protection(), b.protection()), cmp.Compare(a.Priority, b.Priority))
}

func mostImportantFirst(pods []Pod) []Pod {
	return sorted(pods, func(a, b Pod) int { return compareImportance(b, a) })
}

// sorted leaves pods as they are.
func sorted(pods []Pod, compare func(a, b Pod) int) []Pod {
	copied := slices.Clone(pods)
	slices.SortStableFunc(copied, compare)
	return copied
}

// compareCost is negative where a costs less: how many are protected, the highest priority, how many there are, the sum of
// priorities, and when the first began.
func compareCost(a, b []Pod) int {
	first, second := costOf(a), costOf(b)
	return cmp.Or(
		cmp.Compare(first.protected, second.protected), cmp.Compare(first.highest, second.highest),
		cmp.Compare(len(a), len(b)), cmp.Compare(first.sum, second.sum), second.earliest.Compare(first.earliest),
	)
}

type cost struct {
	highest   int32
	protected int
	sum       int64
	earliest  time.Time
}

// costOf returns the cost of evicting pods, of which there are some.
func costOf(pods []Pod) cost {
	found := cost{highest: pods[0].Priority, earliest: pods[0].Started}
	for _, pod := range pods {
		found.highest = max(found.highest, pod.Priority)
		found.sum += int64(pod.Priority)
		found.protected += pod.protection()
		if pod.Started.Before(found.earliest) {
			found.earliest = pod.Started
		}
	}
	return found
}
