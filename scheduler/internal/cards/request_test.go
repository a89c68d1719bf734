package cards

import (
	"fmt"
	"testing"
	"time"
)

// Whoever makes a pod chooses how many containers it has.
func TestReadingTakesTimeInProportion(t *testing.T) {
	memory, slice := Resource{"memory", Memory}, Resource{"slice", Slice}
	var pod Pod
	for place := range 100_000 {
		limits := map[string]string{[]string{"memory", "slice"}[place%2]: "1"}
		pod.Containers = append(pod.Containers, Container{Name: fmt.Sprint(place), Limits: limits})
	}
	began := time.Now()
	request := ReadRequest(pod, []Resource{memory, slice})
	if crowded := request.Crowded(); len(request.Parts) != 2 || crowded != "" {
		t.Error(len(request.Parts), crowded)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("took %s", took)
	}
}
