package ledger

import (
	"cmp"
	"strings"

	"gpushare.io/scheduler/internal/cards"
)

// maxInFull is how many reasons why nodes are closed that begin alike are given in full: where there are more, each is
// given in brief.
const maxInFull = 3

// Sentences returns for people why request does not fit the nodes with these refusals, one for each refusal:
//
//  1. Where amounts do not suffice: the amounts of the node that is nearest to a fit.
//  2. Where many nodes are closed: nothing that is of one node alone.
//
// kube-scheduler counts nodes by their sentences, and writes that into the pod. With amounts of each node that would be
// as long as the cluster is large, and another text after every bind.
func Sentences(refusals []*Refusal, request cards.Request) []string {
	nearest, closed := map[likeness]*Refusal{}, map[string]map[string]bool{}
	for _, refusal := range refusals {
		alike := refusal.alike()
		if best := nearest[alike]; best == nil || refusal.compare(best) > 0 {
			nearest[alike] = refusal
		}
		if refusal.Kind == NodeClosed {
			brief := refusal.brief()
			if closed[brief] == nil {
				closed[brief] = map[string]bool{}
			}
			closed[brief][refusal.Message] = true
		}
	}
	sentences := make([]string, len(refusals))
	for place, refusal := range refusals {
		sentences[place] = nearest[refusal.alike()].Words(request)
		if brief := refusal.brief(); len(closed[brief]) > maxInFull {
			sentences[place] = brief
		}
	}
	return sentences
}

// likeness is the same for refusals that differ in amounts alone.
type likeness struct {
	kind Kind
	what string
}

func (r *Refusal) alike() likeness {
	if r.Resource != "" {
		return likeness{r.Kind, r.Resource}
	}
	return likeness{what: r.Message}
}

// brief returns the message; of a closed node without what it alone may have, such as its cards' names.
func (r *Refusal) brief() string {
	if r.Kind != NodeClosed {
		return r.Message
	}
	brief, _, _ := strings.Cut(r.Message, ": ")
	return brief
}

// compare is positive where r is nearer to a fit than other.
func (r *Refusal) compare(other *Refusal) int {
	return cmp.Or(
		cmp.Compare(r.Nearness[0], other.Nearness[0]),
		cmp.Compare(r.Nearness[1], other.Nearness[1]),
		cmp.Compare(r.Message, other.Message),
	)
}
