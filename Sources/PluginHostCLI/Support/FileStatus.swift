internal import Glibc

/// What is at a path. The corresponding C functions are `stat` and `lstat`; nil where they leave a reason in `errno`.
func fileStatus(_ path: String, followingLink: Bool = true) -> stat? {
    var status = stat()
    return (followingLink ? stat(path, &status) : lstat(path, &status)) == 0 ? status : nil
}
