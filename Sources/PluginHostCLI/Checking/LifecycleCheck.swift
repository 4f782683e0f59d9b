internal import Glibc
internal import PluginABI
internal import PluginHost

/// Activates a module and tears it down repeatedly.
struct LifecycleCheck {
    static let rounds = 8

    let module: CheckedModule
    /// Called when the module is active for the first time.
    let started: () -> Void

    func run(_ result: inout CheckResult) {
        result.summary = "activated and torn down \(Self.rounds) times"
        var descriptors: [Int] = []
        for round in 1...Self.rounds {
            let log = CheckedModule.Log()
            do throws(PluginError) {
                let host = try module.start(log: log, shutdownTimeout: .seconds(5))
                if round == 1 { started() }
                if round == 1, !module.manifest.targets.isEmpty, !host.hasActivate(module.manifest.name) {
                    result.fail(
                        "Its description has no 'activate': it never gets the host's functions, and cannot reply.",
                        advice: "Set 'activate', and keep the pointer that it receives.")
                }
                host.shutdown()
                module.endIfCrashed(host)
                if let generation = host.generations.first(where: { $0.name == module.manifest.name }),
                    generation.state != .retired
                {
                    result.fail(
                        "It was not torn down when the host was shut down: it \(generation.reason) Answer every call, and "
                            + "release objects in 'tearDown'.")
                    return
                }
            } catch {
                let again = round == 1 ? "" : "The \(ordinal(round)) time: "
                result.fail(
                    again + error.message
                        + (round == 1 ? "" : " 'tearDown' must release what 'setUp' and activate acquire."))
                if module.check.isolates {
                    let address = CheckedModule.Log.addresses(of: error.message).first
                    result.findings[result.findings.count - 1].address = address
                }
                return
            }
            descriptors.append(Self.openDescriptors)
        }
        // The first rounds may open files that stay open for the life of the process.
        let growth = descriptors[Self.rounds - 1] - descriptors[2]
        // When the process of an isolated module ends, all that the module has opened is closed.
        if growth >= Self.rounds - 3, !module.check.isolates {
            result.warn(
                "Each time, it leaves a file, a socket or the like open. Close in 'tearDown' what it has opened.")
        }
    }

    private func ordinal(_ number: Int) -> String { number == 2 ? "second" : number == 3 ? "third" : "\(number)th" }

    private static var openDescriptors: Int { (0..<1024).count { fcntl($0, F_GETFD) >= 0 } }
}
