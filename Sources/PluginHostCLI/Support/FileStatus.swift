internal import Glibc

/// Returns the status of the file at a path, as `stat` and `lstat` do; `nil` if they fail, with the reason in `errno`.
func fileStatus(_ path: String, followingLink: Bool = true) -> stat? {
    var status = stat()
    return (followingLink ? stat(path, &status) : lstat(path, &status)) == 0 ? status : nil
}
