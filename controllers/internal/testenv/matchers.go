// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"encoding/json"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HaveCondition succeeds for an object whose status has a condition of that type, with that status and reason.
func HaveCondition(kind string, status metav1.ConditionStatus, reason string) types.GomegaMatcher {
	return gomega.WithTransform(conditions, gomega.ContainElement(gomega.SatisfyAll(
		gomega.HaveField("Type", kind), gomega.HaveField("Status", status), gomega.HaveField("Reason", reason),
	)))
}

// conditions returns status.conditions of an object of any kind.
func conditions(obj client.Object) ([]metav1.Condition, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var content struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	return content.Status.Conditions, json.Unmarshal(raw, &content)
}
