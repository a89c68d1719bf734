package sharenodes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"gpushare.io/scheduler/internal/sharenode"
)

const node = `{"apiVersion":"gpushare.io/v1alpha1","kind":"GPUShareNode",` +
	`"metadata":{"name":"%s","uid":"u-%s","resourceVersion":"%d"},"spec":{"mode":"Memory","memoryUnit":"1Gi"},` +
	`"status":{"memoryUnit":"1Gi","conditions":[{"type":"Registered","status":"True"}],` +
	`"cards":[{"uuid":"GPU-0","index":0,"units":%d,"health":"Healthy"}]}}`

func objectOf(name string, version, units int) string {
	return fmt.Sprintf(node, name, name, version, units)
}

// server answers a list with one node, then a watch with events that come through a channel.
func server(t *testing.T, events <-chan string) *rest.Config {
	t.Helper()
	handler := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/apis/gpushare.io/v1alpha1/gpusharenodes" {
			t.Errorf("asked for %s", r.URL)
		}
		query := r.URL.Query()
		if query.Get("watch") == "" {
			fmt.Fprintf(w, `{"apiVersion":"gpushare.io/v1alpha1","kind":"GPUShareNodeList",`+
				`"metadata":{"resourceVersion":"5"},"items":[%s]}`, objectOf("gpu-1", 3, 16))
			return
		}
		if query.Get("sendInitialEvents") == "true" {
			w.WriteHeader(http.StatusUnprocessableEntity) // as API servers without lists by watch
			return
		}
		w.(http.Flusher).Flush()
		for {
			select {
			case event := <-events:
				fmt.Fprintln(w, event)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	serving := httptest.NewServer(http.HandlerFunc(handler))
	t.Cleanup(serving.Close)
	return &rest.Config{Host: serving.URL}
}

func TestWatchTellsEachChange(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	events, told := make(chan string), make(chan string, 10)
	watch, err := NewWatch(server(t, events), Handler{
		Set:  func(node *sharenode.Node) { told <- fmt.Sprintf("%s has %d", node.Name, node.Cards[0].Units) },
		Drop: func(name string) { told <- name + " is gone" },
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { watch.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	expect(t, told, "gpu-1 has 16")
	for _, step := range []struct{ event, want string }{
		{`{"type":"ADDED","object":` + objectOf("gpu-2", 6, 8) + `}`, "gpu-2 has 8"},
		{`{"type":"MODIFIED","object":` + objectOf("gpu-1", 7, 32) + `}`, "gpu-1 has 32"},
		{`{"type":"DELETED","object":` + objectOf("gpu-1", 8, 32) + `}`, "gpu-1 is gone"},
	} {
		events <- step.event
		expect(t, told, step.want)
	}
	if !watch.HasSynced() {
		t.Error("not synced")
	}
}

func expect(t *testing.T, told <-chan string, want string) {
	t.Helper()
	select {
	case got := <-told:
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nothing; want %q", want)
	}
}
