internal import Glibc

/// Returns the status of the file at a path, like `stat` or `lstat`; `nil` if it fails, with the reason in `errno`.
func fileStatus(_ path: String, followingLink: Bool = true) -> stat? {
    var status = stat()
    return (followingLink ? stat(path, &status) : lstat(path, &status)) == 0 ? status : nil
}
