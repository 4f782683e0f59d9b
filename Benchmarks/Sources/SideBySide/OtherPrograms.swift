import CDispatch
import Foundation
import Glibc

/// What other programs use of the processors, which the reference does not show: it runs too briefly to wait for them.
struct OtherPrograms {
    static let text = "other programs ran"

    private let clock = now()
    private let busy = Self.busy
    private let own = Self.own

    /// Whether they have used more than a tenth of all processors since then.
    var disturb: Bool {
        let seconds = (now() - clock) / 1e9 * Double(sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        return Self.busy - busy - (Self.own - own) > max(0.1 * seconds, 0.05)
    }

    /// The time for which all processors have not been idle, in seconds.
    private static var busy: Double {
        // user, nice, system, idle, iowait, irq, softirq, steal
        let numbers = words(of: "/proc/stat").dropFirst().prefix(8).compactMap { Double($0) }
        guard numbers.count == 8 else { return 0 }
        return (numbers.reduce(0, +) - numbers[3] - numbers[4]) / ticks
    }

    /// The processor time of this process, of its children that have ended, and of those that have not, in seconds.
    private static var own: Double {
        [RUSAGE_SELF.rawValue, RUSAGE_CHILDREN.rawValue].reduce(living) { sum, who in
            var usage = rusage()
            getrusage(__rusage_who_t(who), &usage)
            return [usage.ru_utime, usage.ru_stime].reduce(sum) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
        }
    }

    private static var living: Double {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.filter { Int($0) != nil }.reduce(0) { sum, process in
            // After the name: the state, the parent, … and from the twelfth on user and system time in ticks.
            let numbers = words(of: "/proc/\(process)/stat", after: ")")
            guard numbers.count > 12, numbers[1] == String(getpid()) else { return sum }
            return sum + ((Double(numbers[11]) ?? 0) + (Double(numbers[12]) ?? 0)) / ticks
        }
    }

    private static func words(of file: String, after mark: Character? = nil) -> [Substring] {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return [] }
        let rest = mark.flatMap(text.lastIndex).map { text[text.index(after: $0)...] } ?? text[...]
        return rest.split(whereSeparator: \.isWhitespace)
    }

    private static let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
}
