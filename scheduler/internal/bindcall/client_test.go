package bindcall

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// serve returns a client of an API server.
func serve(t *testing.T, handler http.HandlerFunc) Client {
	t.Helper()
	serving := httptest.NewServer(handler)
	t.Cleanup(serving.Close)
	client, err := NewClient(&rest.Config{Host: serving.URL, QPS: 50, Burst: 100})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func answer(w http.ResponseWriter, code int, retryAfter string) {
	w.Header().Set("Content-Type", "application/json")
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"code":%d,"status":"%s"}`, code,
		map[bool]string{true: "Success", false: "Failure"}[code < 300])
}

func bindingOf(name string) *v1.Binding {
	return &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "u-1"},
		Target:     v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "gpu-1"},
	}
}

// Without this the API server works on a request for a minute: when its outcome is certain would be unknown.
func TestTheAPIServerIsToldForHowLongItMayWork(t *testing.T) {
	var seen []string
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.URL.String())
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u-1"}}`)
			return
		}
		answer(w, http.StatusCreated, "")
	})
	if err := client.Bind(context.Background(), bindingOf("a")); err != nil {
		t.Fatal(err)
	}
	if pod, err := client.Read(context.Background(), "default", "a"); err != nil || pod.UID != "u-1" {
		t.Fatalf("pod %v, error %v", pod, err)
	}
	want := []string{
		"POST /api/v1/namespaces/default/pods/a/binding?timeout=4s", "GET /api/v1/namespaces/default/pods/a?timeout=4s",
	}
	if strings.Join(seen, ", ") != strings.Join(want, ", ") {
		t.Errorf("seen: %v", seen)
	}
}

// A failure that is repeated by the client itself is never seen: here the first request may have bound the pod.
func TestNoRequestIsRepeatedUnseen(t *testing.T) {
	var number atomic.Int32
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if number.Add(1) == 1 {
			answer(w, http.StatusInternalServerError, "1")
			return
		}
		answer(w, http.StatusNotFound, "")
	})
	err := client.Bind(context.Background(), bindingOf("a"))
	if err == nil || number.Load() != 1 {
		t.Errorf("error %v after %d requests", err, number.Load())
	}
}

// kube-scheduler's client sends 50 requests a second unless its configuration says otherwise, and all that wait for
// it would use up the time of their Bindings.
func TestBindingsDoNotWaitForTheClientsLimit(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusCreated, "") })
	begin := time.Now()
	var group sync.WaitGroup
	for worker := range 100 {
		group.Go(func() {
			for number := range 16 {
				if err := client.Bind(context.Background(), bindingOf(fmt.Sprint("a-", worker, "-", number))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}
