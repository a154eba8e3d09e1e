# SPDX-License-Identifier: Apache-2.0

SHELL := /bin/bash
.SHELLFLAGS := -o errexit -o nounset -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# One setting for everything that is compiled, so that everything shares one build cache.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

# Tests wait for what a busy machine takes.
export GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT := 1m

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
IMAGE ?= ghcr.io/openmcp-project/images/cluster-provider-capi:$(VERSION)
PLATFORMS ?= linux/amd64,linux/arm64

MODULE := github.com/openmcp-project/cluster-provider-capi
LDFLAGS := -s -w -X $(MODULE)/cmd/cluster-provider-capi/app.Version=$(VERSION)
PLATFORM := go run ./test/platform/cmd
# The CAPI provider that the tests make clusters with.
LOCAL := test/platform/local
CONTROLLER_GEN := bin/controller-gen
GOLANGCI_LINT := bin/golangci-lint

# What `generate` and `manifests` write.
GENERATED = git ls-files --cached --others --exclude-standard '*/zz_generated.deepcopy.go' api/crds/manifests '$(LOCAL)/config/*.yaml'
# Tells the generated files from what they were.
GENERATED_SUM = $(GENERATED) | xargs sha256sum

##@ General

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## "; print "Usage: make TARGET" } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Develop

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate the deepcopy functions of all API types
	$(CONTROLLER_GEN) object paths=./api/v1alpha1/... paths=./$(LOCAL)/api/...

.PHONY: manifests
manifests: $(CONTROLLER_GEN) ## Generate the CRDs
	$(CONTROLLER_GEN) crd:crdVersions=v1 paths=./api/v1alpha1/... output:crd:dir=./api/crds/manifests
	go run ./api/crds/trim api/crds/manifests/*.yaml
	$(CONTROLLER_GEN) crd:crdVersions=v1 paths=./$(LOCAL)/api/... output:crd:dir=./$(LOCAL)/config/crd
	go test ./$(LOCAL)/config -update

.PHONY: golden
golden: ## Write the golden files anew, to be reviewed as a diff
	go test ./fixtures/... -run Golden -update

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format all Go files
	$(GOLANGCI_LINT) fmt

.PHONY: tidy
tidy: ## Tidy all three modules
	go mod tidy
	cd .ci/tools && go mod tidy
	cd test/platform/tools && go mod tidy

##@ Check

.PHONY: verify
verify: $(CONTROLLER_GEN) $(GOLANGCI_LINT) ## Fail when generated files, samples, docs or the lint config are out of date
	@before="$$($(GENERATED_SUM))"; $(MAKE) --no-print-directory generate manifests; after="$$($(GENERATED_SUM))"; \
		if [ "$$before" != "$$after" ]; then \
			echo "Generated files were out of date. They are current now: review and commit them."; \
			diff <(echo "$$before") <(echo "$$after"); \
		fi
	$(GOLANGCI_LINT) linters >/dev/null
	go test ./fixtures/... -run Golden
	go test ./docs/...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run all linters
	$(GOLANGCI_LINT) run ./...

.PHONY: test
test: test-unit test-e2e ## Run all tests, and start what they need

.PHONY: test-unit
test-unit: ## Run the tests of single packages, those against a real API server among them
	@echo "==> etcd and kube-apiserver (built once)"
	@assets="$$($(PLATFORM) assets)"; echo "==> tests of single packages, with the API server in $$assets"; \
		KUBEBUILDER_ASSETS="$$assets" go test ./... -shuffle=on -timeout 15m
	@echo "==> tests of the platform's own tools"
	@cd test/platform/tools && go test ./virtual-node

.PHONY: test-e2e
test-e2e: ## Run the whole chain on a platform of real parts
	@echo "==> tests of the whole chain (the platform's parts are built once)"
	go test -tags e2e ./test/platform ./test/e2e -timeout 40m -p 1 -count=1 -v

##@ Try

.PHONY: demo
demo: ## Show the whole chain step by step, and keep the platform running until Ctrl-C; ONCE=1 ends with the last step
	@$(PLATFORM) demo $(if $(ONCE),--once)

.PHONY: up
up: ## Start a platform, and run it until Ctrl-C or `make down`
	@$(PLATFORM) up

.PHONY: down
down: ## Stop the platform that `make up` started
	@$(PLATFORM) down

##@ Build

.PHONY: build
build: ## Build the binary into bin/
	go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/cluster-provider-capi

.PHONY: docker-build
docker-build: ## Build the image IMAGE for all PLATFORMS; PUSH=1 pushes it
	docker buildx build --platform $(PLATFORMS) --build-arg VERSION=$(VERSION) --tag $(IMAGE) $(if $(PUSH),--push) .

.PHONY: clean
clean: ## Remove what was built here; the platform's parts stay in the user's cache
	rm -rf bin dist

# The tools come in the versions that .ci/tools/go.mod pins.
$(CONTROLLER_GEN): TOOL := sigs.k8s.io/controller-tools/cmd/controller-gen
$(GOLANGCI_LINT): TOOL := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(CONTROLLER_GEN) $(GOLANGCI_LINT): .ci/tools/go.mod
	@echo "==> $(notdir $@) (built once)"
	@cd .ci/tools && go build -o ../../$@ $(TOOL) && touch ../../$@
