"""Draws the numbers of bench.py as SVG."""

from xml.sax.saxutils import escape

PANELS = (
    ("records_per_second", "Records a second"),
    ("requests_per_1000_records", "Requests for 1,000 records"),
    ("disk_bytes_per_record", "Bytes on disk a record"),
    ("cpu_us_per_record", "CPU of the server, µs a record"),
)
COLOURS = ("#0b6e99", "#d9822b", "#7a7a7a", "#b0b0b0")
WIDTH, LABEL, BAR, ROW, HEADER, MARGIN = 760, 220, 420, 22, 34, 16


def draw(found):
    """The chart: a panel for each number, a bar for each way; bars of a panel have one linear scale."""
    ways = found["ways"]
    panel_height = HEADER + ROW * len(ways)
    height = MARGIN * 2 + 40 + panel_height * len(PANELS)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        ' font-family="sans-serif" font-size="13">',
        "<title>Table versus blob for logs</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(MARGIN, MARGIN + 14, "Table versus blob for logs: the same records, stored in four ways", "bold"),
    ]
    top = MARGIN + 24
    for key, title in PANELS:
        parts.append(_text(MARGIN, top + HEADER - 12, title, "bold"))
        most = max(numbers[key] for numbers in ways.values())
        for index, (name, numbers) in enumerate(ways.items()):
            y = top + HEADER + index * ROW
            width = max(1.0, BAR * numbers[key] / most)
            colour = COLOURS[index % len(COLOURS)]
            parts.append(_text(MARGIN, y + 13, name))
            parts.append(f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{ROW - 5}" fill="{colour}"/>')
            parts.append(_text(LABEL + width + 6, y + 13, _number(numbers[key])))
        top += panel_height
    parts.append(_text(MARGIN, top + 24, f"{found['build']}, {found['date']}", colour="#555555"))
    return "\n".join([*parts, "</svg>\n"])


def _text(x, y, text, weight="normal", colour="#222222"):
    return f'<text x="{x:.1f}" y="{y}" font-weight="{weight}" fill="{colour}">{escape(text)}</text>'


def _number(value):
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}"
