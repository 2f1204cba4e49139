"""Small CZI, ND2 and LIF files for tests, after the descriptions of the formats: no library writes them."""

import struct
from itertools import product

import imagecodecs
import numpy as np

# CZI

_CZI_PIXELS = {("uint8", 1): 0, ("uint16", 1): 1, ("float32", 1): 2, ("uint8", 3): 3, ("uint16", 3): 4}
RAW, LZW, JPEG_XR, ZSTD, ZSTD_HEAD, ZSTD_APART = 0, 2, 4, 5, 6, 106


def _segment(name, content, room=None):
    room = room or len(content)
    return struct.pack("<16sqq", name, room, len(content)) + content + bytes(room - len(content))


def _entry(start, shape, pixel_type, place, compression, pyramid=0, stored=None):
    """`start` and `shape` by axis, the fastest axis first."""
    stored = stored or shape
    code = ZSTD_HEAD if compression == ZSTD_APART else compression
    head = struct.pack("<2siqiiB5xi", b"DV", pixel_type, place, 0, code, pyramid, len(start))
    axes = [
        struct.pack("<4siifi", name.encode(), start[name], shape[name], 0.0, stored[name]) for name in start
    ]
    return head + b"".join(axes)


def _packed(pixels, compression):
    raw = pixels.tobytes()
    if compression == LZW:
        return imagecodecs.lzw_encode(raw)
    if compression == JPEG_XR:
        return imagecodecs.jpegxr_encode(np.squeeze(pixels), level=1.0)
    if compression == ZSTD:
        return imagecodecs.zstd_encode(raw)
    if compression == ZSTD_HEAD:
        return b"\x01" + imagecodecs.zstd_encode(raw)
    if compression == ZSTD_APART:
        apart = np.frombuffer(raw, np.uint8).reshape(-1, pixels.dtype.itemsize).T
        return b"\x03\x01\x01" + imagecodecs.zstd_encode(apart.tobytes())
    return raw


CZI_XML = """<ImageDocument><Metadata><Scaling><Items>
<Distance Id="X"><Value>2.0E-07</Value></Distance><Distance Id="Y"><Value>2.5E-07</Value></Distance>
<Distance Id="Z"><Value>1.0E-06</Value></Distance></Items></Scaling><Information><Image><Dimensions>
<Channels><Channel Id="Channel:0" Name="DAPI"/><Channel Id="Channel:1" Name="GFP"/></Channels>
<T><Positions><Interval><Increment>1.5</Increment></Interval></Positions></T>
<S><Scenes><Scene Index="0" Name="left"/><Scene Index="1" Name="right"/></Scenes></S>
</Dimensions></Image></Information></Metadata></ImageDocument>"""


def write_czi(path, blocks, compression=RAW, xml=CZI_XML):
    """Write blocks, each a start by axis (X and Y first) and pixels (Y, X) or (Y, X, 3), red first."""
    content, entries = bytearray(_segment(b"ZISRAWFILE", bytes(512))), []
    for start, pixels, *pyramid in blocks:
        samples = 3 if pixels.ndim == 3 else 1
        kind = _CZI_PIXELS[pixels.dtype.name, samples]
        stored = {**dict.fromkeys(start, 1), "X": pixels.shape[1], "Y": pixels.shape[0]}
        scale = pyramid[0] if pyramid else 1
        shape = {**stored, "X": stored["X"] * scale, "Y": stored["Y"] * scale}
        entry = _entry(start, shape, kind, len(content), compression, int(bool(pyramid)), stored)
        blue_first = pixels[..., ::-1] if samples == 3 and compression != JPEG_XR else pixels
        data = _packed(np.ascontiguousarray(blue_first), compression)
        note = b"<METADATA/>"
        head = struct.pack("<iiq", len(note), 0, len(data)) + entry
        content += _segment(b"ZISRAWSUBBLOCK", head.ljust(256, b"\x00") + note + data)
        entries.append(entry)
    directory = len(content)
    content += _segment(b"ZISRAWDIRECTORY", struct.pack("<i124x", len(entries)) + b"".join(entries))
    description = len(content)
    text = xml.encode()
    content += _segment(b"ZISRAWMETADATA", struct.pack("<ii248x", len(text), 0) + text)
    struct.pack_into("<iiii32xiqqi", content, 32, 1, 0, 0, 0, 0, directory, description, 0)
    path.write_bytes(content)
    return path


def czi_stack(path, pixels, axes, compression=RAW, scene=None):
    """Write an array whose last axes are Y and X (and S): a block for each plane."""
    counted = axes.partition("Y")[0]
    blocks = []
    for index in product(*(range(size) for size in pixels.shape[: len(counted)])):
        start = {"X": 0, "Y": 0, **dict(zip(counted[::-1], index[::-1], strict=True))}
        blocks.append((start if scene is None else {**start, "S": scene}, pixels[index]))
    return write_czi(path, blocks, compression)


# ND2

_ND2_MAGIC, _ND2_ALIGNED, _ND2_NAME = 0x0ABECEDA, 4096, 4072


def _variant(value, name="no_name"):
    """A value as the XML of the format's version 2."""
    if isinstance(value, dict):
        inner = "".join(_variant(item, key) for key, item in value.items())
        return f'<{name} runtype="CLxListVariant">{inner}</{name}>'
    kind = {bool: "bool", int: "lx_uint32", float: "double", str: "CLxStringW"}[type(value)]
    text = str(value).lower() if isinstance(value, bool) else value
    return f'<{name} runtype="{kind}" value="{text}"/>'


def write_nd2(path, pixels, axes, names=("DAPI", "GFP")):
    """Write an array of axes such as "TPZCYX"."""
    sizes = dict(zip(axes, pixels.shape, strict=True))
    loops = [letter for letter in axes if letter in "TPZ"]
    n_channels = sizes.get("C", 1)
    n_frames = int(np.prod([sizes[letter] for letter in loops], dtype=int))
    components = n_channels * sizes.get("S", 1)
    attributes = {
        "uiWidth": sizes["X"],
        "uiWidthBytes": sizes["X"] * components * pixels.dtype.itemsize,
        "uiHeight": sizes["Y"],
        "uiComp": components,
        "uiBpcInMemory": 8 * pixels.dtype.itemsize,
        "uiBpcSignificant": 8 * pixels.dtype.itemsize,
        "uiSequenceCount": n_frames,
        "eCompression": 2,
    }
    planes = {
        f"a{k}": {
            "sDescription": names[k],
            "uiCompCount": sizes.get("S", 1),
            "uiColor": 255,
            "pFluorescentProbe": {"m_sName": "dye"},
        }
        for k in range(n_channels)
    }
    picture = {
        "bCalibrated": True,
        "dCalibration": 0.25,
        "sPicturePlanes": {"uiCount": n_channels, "sPlaneNew": planes},
    }
    kinds = {
        "T": lambda n: (1, {"uiCount": n, "dStart": 0.0, "dPeriod": 500.0, "dDuration": 0.0}),
        "P": lambda n: (2, _positions(n)),
        "Z": lambda n: (
            4,
            {"uiCount": n, "dZStep": 2.0, "dZLow": 0.0, "dZHigh": 2.0 * (n - 1), "dZHome": 0.0},
        ),
    }
    experiment = {}
    for letter in reversed(loops):
        kind, parameters = kinds[letter](sizes[letter])
        below = {"ppNextLevelEx": {"no_name": experiment}} if experiment else {}
        experiment = {"eType": kind, "uLoopPars": parameters, **below}
    frames = pixels.reshape(n_frames, n_channels, sizes["Y"], sizes["X"], sizes.get("S", 1))
    chunks = [("ImageAttributes!", attributes), ("ImageMetadataSeq|0!", picture)]
    chunks += [("ImageMetadata!", experiment)] if experiment else []
    content, places = bytearray(), {}
    content += struct.pack("<IIQ32s64s", _ND2_MAGIC, 32, 64, b"ND2 FILE SIGNATURE CHUNK NAME01!", b"Ver2.1")

    def add(name, data):
        content.extend(bytes(-len(content) % _ND2_ALIGNED))
        places[name] = (len(content), len(data))
        content.extend(struct.pack("<IIQ", _ND2_MAGIC, _ND2_NAME, len(data)))
        content.extend(name.encode().ljust(_ND2_NAME, b"\x00") + data)

    for name, value in chunks:
        add(name, f"<variant>{_variant(value)}</variant>".encode())
    for number, frame in enumerate(frames):
        # Pixels stand behind eight bytes of time.
        add(f"ImageDataSeq|{number}!", struct.pack("<d", 0.0) + frame.transpose(1, 2, 0, 3).tobytes())
    table = b"".join(name.encode() + struct.pack("<QQ", *place) for name, place in places.items())
    content.extend(bytes(-len(content) % _ND2_ALIGNED))
    start, table = len(content), table + b"ND2 CHUNK MAP SIGNATURE 0000001!"
    table += struct.pack("<Q", start)
    content.extend(
        struct.pack("<IIQ", _ND2_MAGIC, 32, len(table)) + b"ND2 FILEMAP SIGNATURE NAME 0001!" + table
    )
    path.write_bytes(content)
    return path


def _positions(count):
    points = {f"i{k:010}": {"dPosX": float(k), "dPosY": 0.0, "dPosZ": 0.0} for k in range(count)}
    return {"uiCount": count, "bUseZ": False, "Points": points}


# LIF

_LIF_AXES = {"X": 1, "Y": 2, "Z": 3, "T": 4, "λ": 5}


def write_lif(path, images):
    """Write images by name, each an array and its axes, e.g. "TZYX" or "CYX"."""
    elements, blocks = [], []
    for number, (name, (pixels, axes)) in enumerate(images.items()):
        sizes = dict(zip(axes, pixels.shape, strict=True))
        steps = dict(zip(axes, pixels.strides, strict=True))
        common = 'NameOfMeasuredQuantity="" Min="0" Max="255" Unit="" IsLUTInverted="0" BitInc="0"'
        channels = "".join(
            f'<ChannelDescription DataType="0" ChannelTag="0" Resolution="{8 * pixels.itemsize}" '
            f'LUTName="{lut}" BytesInc="{k * steps.get("C", 0)}" {common}/>'
            for k, lut in enumerate(("Green", "Red")[: sizes.get("C", 1)])
        )
        dimensions = "".join(
            f'<DimensionDescription DimID="{_LIF_AXES[letter]}" NumberOfElements="{sizes[letter]}" '
            f'Origin="0" Length="{(sizes[letter] - 1) * (0.5 if letter == "T" else 2e-7)}" '
            f'Unit="{"s" if letter == "T" else "m"}" BitInc="0" BytesInc="{steps[letter]}"/>'
            for letter in reversed(axes)
            if letter != "C"
        )
        elements.append(
            f'<Element Name="{name}" Visibility="1" CopyOption="1" UniqueID="{number}"><Data>'
            f'<Image TextDescription=""><ImageDescription><Channels>{channels}</Channels>'
            f"<Dimensions>{dimensions}</Dimensions></ImageDescription></Image></Data>"
            f'<Memory Size="{pixels.nbytes}" MemoryBlockID="MemBlock_{number}"/></Element>'
        )
        blocks.append((f"MemBlock_{number}", pixels.tobytes()))
    header = (
        '<LMSDataContainerHeader Version="2"><Element Name="test.lif" Visibility="1" CopyOption="1"><Data>'
        '<Experiment IsSavedFlag="1" Path=""/></Data><Memory Size="0" MemoryBlockID="MemBlock_none"/>'
        f"<Children>{''.join(elements)}</Children></Element></LMSDataContainerHeader>"
    ).encode("utf-16-le")
    content = struct.pack("<IIBI", 0x70, len(header) + 5, 0x2A, len(header) // 2) + header
    for name, data in blocks:
        text = name.encode("utf-16-le")
        inner = struct.pack("<BQBI", 0x2A, len(data), 0x2A, len(name)) + text
        content += struct.pack("<II", 0x70, len(inner)) + inner + data
    path.write_bytes(content)
    return path
