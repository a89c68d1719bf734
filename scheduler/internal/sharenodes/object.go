// Package sharenodes watches the GPUShareNodes of the cluster.
//
// Each object is decoded once, from the bytes of the watch, and only what placement needs of it is kept: a dynamic
// informer would keep all of it as maps, tens of kilobytes a node.
package sharenodes

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"gpushare.io/scheduler/internal/sharenode"
)

// Version is the version of the API in which GPUShareNodes are read.
var Version = schema.GroupVersion{Group: "gpushare.io", Version: "v1alpha1"}

const (
	kind = "GPUShareNode"
	// resource is how paths name the kind.
	resource = "gpusharenodes"
)

// object is a GPUShareNode as far as it is kept. It never changes once it is decoded.
type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	// node is nil in a bookmark of the watch.
	node *sharenode.Node
}

// header is what a watch needs of an object.
type header struct {
	metav1.TypeMeta
	Metadata struct {
		Name            string            `json:"name"`
		UID             types.UID         `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// UnmarshalJSON reads an object, or a bookmark, which has no name.
func (o *object) UnmarshalJSON(raw []byte) error {
	var read header
	if err := json.Unmarshal(raw, &read); err != nil {
		return err
	}
	o.TypeMeta = read.TypeMeta
	o.Name, o.UID, o.ResourceVersion = read.Metadata.Name, read.Metadata.UID, read.Metadata.ResourceVersion
	if o.Name == "" {
		o.Annotations = read.Metadata.Annotations // they tell the end of what is there already
		return nil
	}
	node, err := sharenode.Read(raw)
	o.node = node
	return err
}

// DeepCopyObject implements runtime.Object.
func (o *object) DeepCopyObject() runtime.Object {
	copied := &object{TypeMeta: o.TypeMeta, node: o.node}
	o.DeepCopyInto(&copied.ObjectMeta)
	return copied
}

// objects is a list of GPUShareNodes.
type objects struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []object `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (o *objects) DeepCopyObject() runtime.Object {
	copied := &objects{TypeMeta: o.TypeMeta, Items: make([]object, len(o.Items))}
	o.ListMeta.DeepCopyInto(&copied.ListMeta)
	copy(copied.Items, o.Items)
	return copied
}
