// Denoise the open image with vnlem, in a Python environment of your own, through Appose.
// Needs Fiji with appose and imglib2-appose (BSD-2), and a Python environment with `pip install vnlem appose`.
// Not tested in Fiji; its Python side, vnlem_worker.py in this folder, is tested with the package.

#@ ImagePlus imp
#@ File (label="Python environment with vnlem", style="directory") environment
#@ File (label="vnlem_worker.py") worker
#@ String (label="Sigma of the noise (empty: estimate)", required=false) sigma
#@ String (label="Profile", choices={"balanced", "quality", "fast"}) profile
#@ Boolean (label="Pages help each other (movies, volumes)", value=true) together
#@output ImagePlus result

import ij.IJ
import ij.ImagePlus
import net.imglib2.appose.NDArrays
import net.imglib2.appose.ShmImg
import net.imglib2.img.display.imagej.ImageJFunctions
import net.imglib2.util.ImgUtil
import org.apposed.appose.Appose
import org.apposed.appose.Service.ResponseType

if (imp.getType() == ImagePlus.COLOR_RGB || imp.getType() == ImagePlus.COLOR_256) {
    IJ.error("vnlem", "Convert the image to 8-bit, 16-bit or 32-bit grey, or to a composite, first.")
    return
}

// ImageJ stores x first; Python names the axes from the slowest to the fastest.
axes = ""
if (imp.getNFrames() > 1) axes += together ? "T" : "N"
if (imp.getNSlices() > 1) axes += "Z"
if (imp.getNChannels() > 1) axes += "C"
axes += "YX"

source = ImageJFunctions.wrap(imp)
shared = new ShmImg(source.firstElement().createVariable(), source.dimensionsAsLongArray())
ImgUtil.copy(source, shared)

service = Appose.custom().base(environment).binPaths(new File(environment, "Scripts").path).build().python()
try {
    inputs = [image: NDArrays.asNDArray(shared), axes: axes, profile: profile,
              sigma: sigma?.trim() ? Double.parseDouble(sigma.trim()) : null]
    task = service.task(worker.text, inputs)
    task.listen { event ->
        if (event.responseType == ResponseType.UPDATE) IJ.showProgress(event.current as int, event.maximum as int)
    }
    task.waitFor()
    if (task.error) {
        IJ.error("vnlem", task.error)
        return
    }
    IJ.log("vnlem: " + imp.getTitle() + ": " + task.outputs["noise"])
    // A copy outlives the shared memory.
    result = ImageJFunctions.wrap(shared, "vnlem " + imp.getTitle()).duplicate()
    result.setTitle("vnlem " + imp.getTitle())
    result.setDimensions(imp.getNChannels(), imp.getNSlices(), imp.getNFrames())
    result.setOpenAsHyperStack(imp.getStackSize() > 1)
    result.setCalibration(imp.getCalibration().copy())
    result.setDisplayRange(imp.getDisplayRangeMin(), imp.getDisplayRangeMax())
} finally {
    service.close()
    shared.ndArray().close()
}
