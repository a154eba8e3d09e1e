// SPDX-License-Identifier: Apache-2.0

// Command etcd is the etcd server, which has no buildable main package in the module that is served.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
