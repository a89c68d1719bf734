// Package fwk has what plugins implement and are given by the scheduling framework, wherever Kubernetes has it: until
// 1.34 a part was in k8s.io/kubernetes, from 1.35 on all is in k8s.io/kube-scheduler. It goes with 1.34.
//
// What is here are other names for the same types: code that needs nothing of that part uses k8s.io/kube-scheduler.
package fwk

import fwk "k8s.io/kube-scheduler/framework"

// In k8s.io/kube-scheduler in all minors.
type (
	Code       = fwk.Code
	CycleState = fwk.CycleState
	NodeInfo   = fwk.NodeInfo
	PodInfo    = fwk.PodInfo
	Status     = fwk.Status
)

// In k8s.io/kube-scheduler in all minors.
const (
	Skip                         = fwk.Skip
	Unschedulable                = fwk.Unschedulable
	UnschedulableAndUnresolvable = fwk.UnschedulableAndUnresolvable
)

// AsStatus returns the status of an attempt that failed with err, which is no refusal.
func AsStatus(err error) *Status { return fwk.AsStatus(err) }

// NewStatus returns a status with reasons for people.
func NewStatus(code Code, reasons ...string) *Status { return fwk.NewStatus(code, reasons...) }
