import Figures
import Work

/// Rows that are measured together, in a process of their own: modules stay in a process for ever, and a thousand of
/// them slow down the lookups of the runtime.
enum Group: String, CaseIterable {
    case calls, asynchronous, payloads, urls, matching, registering, services, events, threads, replacing, start, memory
    case known, arrival, isolated

    func rows(_ effort: Effort) throws -> [Row] {
        let sizes = effort.isCheck ? [10] : [10, 1_000, 10_000]
        switch self {
        case .calls: return try measure(try Comparison.calls(sizes), effort)
        case .asynchronous: return try measure(try Comparison.asynchronous(), effort)
        case .payloads:
            return try measure(try Comparison.payloads([1 << 10, 1 << 16, 1 << 20]), effort)
        case .urls: return try measure(try Comparison.urls(sizes), effort)
        case .matching: return try Matching(effort).rows()
        case .registering: return try Registering(effort).rows()
        case .services:
            return try measure(try Comparison.services(effort.isCheck ? [2] : [2, 100, 1_000]), effort)
        case .events:
            return try measure(try Comparison.events(effort.isCheck ? [1, 3] : [1, 100, 1_000]), effort)
        case .threads: return try effort.referenced { try Threads(effort).rows() }
        case .replacing: return try effort.referenced { try Replacing(effort).rows() }
        case .start: return try Start(effort).rows()
        case .known: return try Known(effort).rows()
        case .memory: return try effort.referenced { try Memory(effort).rows() }
        case .arrival: return try Arrival(effort).rows()
        case .isolated:
            return try measure(try Comparison.isolated(), effort) + effort.referenced { try Isolated(effort).rows() }
        }
    }

    private func measure(_ comparisons: [Comparison], _ effort: Effort) throws -> [Row] {
        var rows: [Row] = []
        for comparison in comparisons { rows.append(try effort.row(comparison)) }
        return rows
    }
}
