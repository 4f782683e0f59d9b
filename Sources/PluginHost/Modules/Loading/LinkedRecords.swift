import PluginABI

/// The records of the modules that are linked into the process: into the program, into a library that the program is
/// linked with, or into one that is preloaded.
///
/// The linker defines symbols for the bounds of a section only in an image that uses them, and program headers have no
/// names. For all images but this one, the section is therefore found in the section headers of the image's file, and
/// read where the image is mapped.
struct LinkedRecords: Sendable {
    /// The address of an entry function, in a section of an image.
    struct Record: Sendable {
        /// The path of the image; `nil` for the program.
        let library: String?
        /// The entry function; an error if the record does not lead to code of its image.
        let entry: Result<@Sendable () -> UInt, PluginError>

        /// The library for messages: ` in /lib/libshop.so`; empty for the program.
        var location: String { library.map { " in \($0)" } ?? "" }
    }

    private(set) var records: [Record] = []
    /// The reasons why images were not searched.
    private(set) var problems: [PluginError] = []

    /// The records of the images that the process had when this was first read: before a host opened a module, since
    /// the record of such a module must not count.
    static let ofProcess = LinkedRecords()

    /// Reads ``ofProcess``, if that has not been done. Must be called before a library is opened.
    static func note() { _ = ofProcess }

    private init() {
        for image in LoadedImage.all {
            do throws(PluginError) {
                let addresses = try image.containsThisCode ? LoadedImage.ownRecords : image.records()
                records += addresses.map { Record(library: image.library, entry: image.entry(at: $0)) }
            } catch {
                problems.append(error)
            }
        }
    }
}
