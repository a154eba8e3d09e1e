// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the controlplane kinds of the Cluster API provider "local".
//
// +kubebuilder:object:generate=true
// +groupName=controlplane.cluster.x-k8s.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds.
var GroupVersion = schema.GroupVersion{Group: "controlplane.cluster.x-k8s.io", Version: "v1alpha1"}

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&LocalControlPlane{}, &LocalControlPlaneList{}, &LocalControlPlaneTemplate{}, &LocalControlPlaneTemplateList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
