package cards

import (
	"fmt"
	"testing"

	"gpushare.io/scheduler/internal/proportion"
)

// Whoever makes a pod chooses how many containers it has.
func TestReadingTakesTimeInProportion(t *testing.T) {
	memory, slice := Resource{"memory", Memory}, Resource{"slice", Slice}
	err := proportion.Check(100_000, func(number int) func() {
		var pod Pod
		for place := range number {
			limits := map[string]string{[]string{"memory", "slice"}[place%2]: "1"}
			pod.Containers = append(pod.Containers, Container{Name: fmt.Sprint(place), Limits: limits})
		}
		return func() {
			request := ReadRequest(pod, []Resource{memory, slice})
			if crowded := request.Crowded(); len(request.Parts) != 2 || crowded != "" {
				t.Error(len(request.Parts), crowded)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}
