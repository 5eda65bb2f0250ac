package vcsim

// GoName is the Go method that answers a vSphere method: PowerOnVM_Task is PowerOnVMTask.
func GoName(method string) string {
	const suffix = "_Task"
	name := Capital(method)
	if len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix {
		return name[:len(name)-len(suffix)] + "Task"
	}
	return name
}

// TaskName is the name of the task that a vSphere method starts: PowerOnVM_Task starts powerOnVMTask.
func TaskName(method string) string {
	name := GoName(method)
	return string(lower(name[0])) + name[1:]
}

// Capital is a name that begins with a capital letter.
func Capital(name string) string { return string(upper(name[0])) + name[1:] }

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c - 'A' + 'a'
	}
	return c
}
